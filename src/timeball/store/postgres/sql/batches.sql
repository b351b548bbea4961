-- Return a page of batches, newest first: each with how many edges to jobs it has, and of how many
-- the end is known, counting no more than so many of each.
SELECT job.id, job.uuid, coalesce(job.args ->> 'name', ''), jobs.state,
    coalesce(jobs.reason = 'open', false), job.created_at, jobs.ended_at,
    (
        SELECT count(*) FROM (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.child = job.id AND edge.rule = 'member' LIMIT %(most)s) AS counted
    ), (
        SELECT count(*) FROM (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.child = job.id AND edge.joins AND edge.decided_at IS NULL LIMIT %(most)s
        ) AS counted
    )
FROM timeball.job
CROSS JOIN LATERAL (
    SELECT one.state, one.reason, one.ended_at FROM timeball.jobs AS one
    WHERE one.id = job.id OFFSET 0
) AS jobs
WHERE job.kind = 'timeball.batch'
  AND (%(before_id)s::bigint IS NULL OR job.id < %(before_id)s)
ORDER BY job.id DESC
LIMIT %(limit)s;
