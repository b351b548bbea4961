-- Return a batch, the batches in it and their jobs, each with its edges and with its turns that have
-- ended, by id and all of one snapshot. A job that was moved has no queue.
-- Plan: pinned to index probes, one job after the other; as a join it was one of n * n. The view
-- of all jobs, which costs most, is asked only for those that neither are held nor have ended.
CREATE OR REPLACE FUNCTION timeball.batch_members(p_batch bigint)
RETURNS TABLE (id bigint, uuid uuid, kind text, state text, turn integer, reason text,
    ruled_out text, name text, edges text, attempts text, spawned bigint[], queue text, key text)
LANGUAGE sql STABLE
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
SELECT job.id, job.uuid, job.kind, coalesce(held.state, last.state, jobs.state),
    coalesce(held.turn, last.turn, jobs.turn),
    CASE WHEN held.job_id IS NOT NULL THEN held.reason
        WHEN last.turn IS NOT NULL THEN last.reason ELSE jobs.reason END,
    coalesce(job.ruled_out, 'skip'),
    CASE WHEN job.kind = 'timeball.batch' THEN coalesce(job.args ->> 'name', '') ELSE '' END, (
        SELECT coalesce(jsonb_agg(jsonb_build_array(edge.parent, edge.rule, edge.met)
            ORDER BY edge.parent), '[]')::text
        FROM timeball.dependency AS edge WHERE edge.child = job.id AND NOT edge.spawned
    ), (
        SELECT coalesce(jsonb_agg(jsonb_build_array(ended.turn, ended.event,
            extract(epoch FROM coalesce(again.at, first.at, ended.began_at)),
            extract(epoch FROM ended.began_at), coalesce(ended.ran_s, 0),
            coalesce(again.delay_s, 0)) ORDER BY ended.turn),
            '[]')::text
        FROM timeball.ended
        LEFT JOIN timeball.entry AS again
            ON again.job_id = job.id AND again.turn = ended.turn AND again.attempts IS NOT NULL
        LEFT JOIN timeball.entry AS first
            ON first.lane = job.lane AND first.xid = job.xid AND first.job_id = job.id
            AND ended.turn = 1
        WHERE ended.job_id = job.id AND ended.began_at IS NOT NULL
    ), array(
        SELECT edge.parent FROM timeball.dependency AS edge
        WHERE edge.child = job.id AND edge.spawned ORDER BY edge.parent
    ), (
        SELECT lane.queue FROM timeball.lane
        WHERE lane.id = job.lane
          AND NOT EXISTS (SELECT FROM timeball.moved WHERE moved.job_id = job.id)
    ), job.key
FROM member
CROSS JOIN LATERAL (
    SELECT one.* FROM timeball.job AS one WHERE one.id = member.id OFFSET 0
) AS job
LEFT JOIN LATERAL (
    SELECT one.* FROM timeball.held AS one WHERE one.job_id = member.id OFFSET 0
) AS held ON true
LEFT JOIN LATERAL (
    SELECT CASE newest.event WHEN 'expired' THEN 'skipped' ELSE newest.event END AS state,
        newest.turn, newest.reason
    FROM (
        SELECT ended.event, ended.turn, ended.reason FROM timeball.ended
        WHERE ended.job_id = member.id ORDER BY ended.turn DESC LIMIT 1
    ) AS newest
    WHERE newest.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired') AND (
        SELECT 1 FROM timeball.event
        WHERE event.job_id = member.id AND event.turn = newest.turn AND event.kind = 'revived'
    ) IS NULL
    OFFSET 0
) AS last ON true
LEFT JOIN LATERAL (
    SELECT one.state, one.turn, one.reason FROM timeball.jobs AS one
    WHERE one.id = member.id AND held.job_id IS NULL AND last.turn IS NULL
    OFFSET 0
) AS jobs ON true
ORDER BY job.id;
$function$;
