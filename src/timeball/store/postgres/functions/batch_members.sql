-- Return a batch, the batches in it and their jobs, each with its edges and with its turns that have
-- ended, by id and all of one snapshot.
-- Plan: pinned to index probes, one job after the other; as a join it was one of n * n.
CREATE OR REPLACE FUNCTION timeball.batch_members(p_batch bigint)
RETURNS TABLE (id bigint, uuid uuid, kind text, state text, turn integer, reason text,
    ruled_out text, name text, edges text, attempts text) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH node AS MATERIALIZED (
    SELECT u.id FROM unnest(timeball.batch_nodes(p_batch)) AS u (id)
),
member AS MATERIALIZED (
    SELECT node.id FROM node
    UNION
    SELECT edge.parent FROM node
    JOIN timeball.dependency AS edge ON edge.child = node.id AND edge.rule = 'member'
)
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.state, jobs.turn, jobs.reason,
    coalesce(job.ruled_out, 'skip'),
    CASE WHEN jobs.kind = 'timeball.batch' THEN coalesce(job.args ->> 'name', '') ELSE '' END, (
        SELECT coalesce(jsonb_agg(jsonb_build_array(edge.parent, edge.rule, edge.met)
            ORDER BY edge.parent), '[]')::text
        FROM timeball.dependency AS edge WHERE edge.child = jobs.id AND NOT edge.spawned
    ), (
        SELECT coalesce(jsonb_agg(jsonb_build_array(ended.turn, ended.event,
            extract(epoch FROM coalesce(again.at, first.at, ended.began_at)),
            extract(epoch FROM ended.began_at), coalesce(ended.ran_s, 0),
            coalesce(again.delay_s, 0)) ORDER BY ended.turn),
            '[]')::text
        FROM timeball.ended
        LEFT JOIN timeball.entry AS again
            ON again.job_id = jobs.id AND again.turn = ended.turn AND again.attempts IS NOT NULL
        LEFT JOIN timeball.entry AS first
            ON first.lane = job.lane AND first.xid = job.xid AND first.job_id = jobs.id
            AND ended.turn = 1
        WHERE ended.job_id = jobs.id AND ended.began_at IS NOT NULL
    )
FROM member
CROSS JOIN LATERAL (
    SELECT one.* FROM timeball.jobs AS one WHERE one.id = member.id OFFSET 0
) AS jobs
CROSS JOIN LATERAL (
    SELECT one.* FROM timeball.job AS one WHERE one.id = member.id OFFSET 0
) AS job
ORDER BY jobs.id;
$function$;
