-- Return what a worker needs to carry out the turns of one lease, in their order.
CREATE OR REPLACE FUNCTION timeball.lease_turns(p_lane integer, p_seq bigint, p_worker bigint)
RETURNS TABLE (
    job_id bigint, turn integer, uuid uuid, kind text, args text, attempts integer,
    failures integer, crashes integer, delay_s double precision, max_retries integer,
    timeout_s double precision, granted_at double precision, at_most_once boolean,
    ready_at double precision, limited boolean, rates text[], waited boolean,
    awaited text[]
) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT job.id, granted.turn, job.uuid, job.kind, job.args::text, coalesce(again.attempts, 0),
    coalesce(again.failures, 0), coalesce(again.crashes, 0), coalesce(again.delay_s, 0),
    job.max_retries, job.timeout_s, date_part('epoch', lease.at), job.at_most_once,
    -- The first entry of a job is made as the job is: it need not be looked up.
    date_part('epoch', coalesce(again.at, job.created_at)),
    job.key IS NOT NULL OR lease.at_once IS NOT NULL,
    CASE WHEN EXISTS (SELECT FROM timeball.limiter WHERE limiter.starts IS NOT NULL)
        THEN timeball.rates_of(
            (SELECT lane.queue FROM timeball.lane WHERE lane.id = p_lane), job.kind, job.key)
        ELSE '{}' END,
    again.lined_at IS NOT NULL,
    -- A job that has waited for what it spawned: its result, and one of those that did not succeed.
    CASE WHEN past.event = 'awaited' THEN ARRAY[past.result, (
        SELECT min(edge.parent_uuid::text) FROM timeball.dependency AS edge
        CROSS JOIN LATERAL (
            SELECT ended.event FROM timeball.ended
            WHERE ended.job_id = edge.parent ORDER BY ended.turn DESC LIMIT 1
        ) AS last
        WHERE edge.child = job.id AND edge.spawned AND last.event IN ('failed', 'cancelled')
    )] END
FROM timeball.lease
CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) WITH ORDINALITY AS granted (job_id, turn, n)
JOIN timeball.job ON job.id = granted.job_id
LEFT JOIN timeball.entry AS again
    ON again.job_id = granted.job_id AND again.turn = granted.turn AND again.attempts IS NOT NULL
LEFT JOIN LATERAL (
    SELECT ended.event, ended.result::text AS result FROM timeball.ended
    WHERE ended.job_id = again.job_id AND ended.turn < again.turn
      AND ended.event NOT IN ('released', 'lost', 'moved')
    ORDER BY ended.turn DESC LIMIT 1
) AS past ON true
WHERE lease.lane = p_lane AND lease.seq = p_seq AND lease.worker = p_worker
ORDER BY granted.n;
$function$;
