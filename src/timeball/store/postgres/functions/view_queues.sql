-- Return every queue with what waits in it, what runs, and what was said about it. Counting
-- ends at p_most for each number: a queue of millions is not walked. No lock is taken.
--
-- What runs is looked for among the newest p_most turns that each live worker was granted in a
-- lane, and among its oldest lease there with open turns.
-- Plan: pinned, so that each lane is read through entry_order from its cursor on.
CREATE OR REPLACE FUNCTION timeball.view_queues(p_most integer)
RETURNS TABLE (
    name text, pending bigint, held bigint, running bigint, oldest_s double precision,
    paused_at timestamptz, paused_by text, at_once integer, max_depth integer
) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT known.name, least(waiting.n, p_most), least(back.n, p_most), least(under_way.n, p_most),
    extract(epoch FROM timeball.now() - waiting.first)::double precision,
    queue.paused_at, queue.paused_by, limiter.at_once, queue.max_depth
FROM (
    SELECT lane.queue AS name FROM timeball.lane
    UNION SELECT queue.name FROM timeball.queue
    UNION SELECT limiter.name FROM timeball.limiter WHERE limiter.scope = 'queue'
) AS known
LEFT JOIN timeball.queue ON queue.name = known.name
LEFT JOIN timeball.limiter ON limiter.scope = 'queue' AND limiter.name = known.name
CROSS JOIN LATERAL (
    SELECT count(line.at) AS n, min(line.at) AS first
    FROM timeball.lane
    CROSS JOIN LATERAL timeball.line_of(lane.id, p_most) AS line
    WHERE lane.queue = known.name AND line.live
) AS waiting
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM timeball.lane
    CROSS JOIN LATERAL (SELECT FROM timeball.held WHERE held.lane = lane.id LIMIT p_most) AS one
    WHERE lane.queue = known.name
) AS back
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM timeball.lane
    CROSS JOIN timeball.worker
    CROSS JOIN LATERAL (
        SELECT lease.floor FROM timeball.lease
        WHERE lease.worker = worker.id AND lease.lane = lane.id
        ORDER BY lease.seq DESC LIMIT 1
    ) AS newest
    CROSS JOIN LATERAL (
        SELECT turn.* FROM (
            SELECT granted.* FROM timeball.lease
            CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted
            WHERE lease.worker = worker.id AND lease.lane = lane.id AND lease.seq > newest.floor
            ORDER BY lease.seq DESC LIMIT p_most
        ) AS turn (job_id, turn)
        WHERE (
            SELECT 1 FROM timeball.ended
            WHERE ended.job_id = turn.job_id AND ended.turn = turn.turn
        ) IS NULL
        UNION ALL
        SELECT turn.* FROM timeball.lease
        CROSS JOIN LATERAL (  -- one walk of the index for all of them: most have ended
            SELECT * FROM unnest(lease.job_ids, lease.turns)
            EXCEPT SELECT ended.job_id, ended.turn FROM timeball.ended
            WHERE ended.job_id = ANY (lease.job_ids)
        ) AS turn
        WHERE lease.worker = worker.id AND lease.lane = lane.id AND lease.seq = newest.floor
    ) AS turn (job_id, turn)
    WHERE lane.queue = known.name AND worker.ended_at IS NULL
      AND EXISTS (SELECT FROM timeball.job WHERE job.id = turn.job_id)
) AS under_way
ORDER BY known.name COLLATE "C";
$function$;
