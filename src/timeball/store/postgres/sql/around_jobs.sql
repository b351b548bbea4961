-- Return some jobs with the edges between them, by id, as `batch_members` does; no attempts.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.state, jobs.turn, jobs.reason,
    coalesce(job.ruled_out, 'skip'),
    CASE WHEN jobs.kind = 'timeball.batch' THEN coalesce(job.args ->> 'name', '') ELSE '' END, (
        SELECT coalesce(jsonb_agg(jsonb_build_array(edge.parent, edge.rule, edge.met)
            ORDER BY edge.parent), '[]')::text
        FROM timeball.dependency AS edge
        WHERE edge.child = one.id AND edge.parent = ANY (%(jobs)s) AND NOT edge.spawned
    ), '[]', array(
        SELECT edge.parent FROM timeball.dependency AS edge
        WHERE edge.child = one.id AND edge.parent = ANY (%(jobs)s) AND edge.spawned
        ORDER BY edge.parent
    )
FROM unnest(%(jobs)s::bigint[]) AS one (id)
CROSS JOIN LATERAL (
    SELECT each.* FROM timeball.jobs AS each WHERE each.id = one.id OFFSET 0
) AS jobs
CROSS JOIN LATERAL (
    SELECT each.* FROM timeball.job AS each WHERE each.id = one.id OFFSET 0
) AS job
ORDER BY jobs.id;
