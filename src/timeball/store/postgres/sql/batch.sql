-- Return a batch, and how many of its jobs are in each state, all of one snapshot; or no row.
SELECT job.id, job.uuid, coalesce(job.args ->> 'name', ''), jobs.state,
    coalesce(jobs.reason = 'open', false), job.created_at, jobs.ended_at, member.counts
FROM timeball.job
CROSS JOIN LATERAL (
    SELECT one.state, one.reason, one.ended_at FROM timeball.jobs AS one
    WHERE one.id = job.id OFFSET 0
) AS jobs
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(each.state, each.jobs), '{}')::text AS counts
    FROM (
        SELECT one.state, count(*) AS jobs FROM timeball.batch_jobs(job.id) AS one
        GROUP BY one.state
    ) AS each
) AS member
WHERE job.uuid = %(batch)s AND job.kind = 'timeball.batch';
