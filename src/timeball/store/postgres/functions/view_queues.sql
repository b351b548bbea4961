-- Return every queue with what waits in it, what runs, and what was said about it. Counting
-- ends at p_most for each number: a queue of millions is not walked. No lock is taken.
--
-- What runs is looked for among the newest p_most turns that each live worker was granted in a
-- lane, and among its oldest lease there with open turns.
-- Plan: pinned, so that each lane is read through entry_order from its cursor on; what is known of a
-- queue is added up, not joined.
CREATE OR REPLACE FUNCTION timeball.view_queues(p_most integer)
RETURNS TABLE (
    name text, pending bigint, held bigint, running bigint, oldest_s double precision,
    paused_at timestamptz, paused_by text, at_once integer, max_depth integer
) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_sort = off  -- what has ended is taken away by hash, which is cheaper than in order
AS $function$
WITH clock AS MATERIALIZED (SELECT timeball.now() AS at)  -- once, and not for each queue
SELECT seen.name, least(coalesce(sum(seen.pending), 0), p_most)::bigint,
    least(coalesce(sum(seen.held), 0), p_most)::bigint, least(count(seen.job_id), p_most),
    extract(epoch FROM min(clock.at) - min(seen.first))::double precision,
    max(seen.paused_at), max(seen.paused_by), max(seen.at_once), max(seen.max_depth)
FROM (
    SELECT lane.queue, waiting.n, back.n, NULL::bigint, waiting.first,
        NULL::timestamptz, NULL::text, NULL::integer, NULL::integer
    FROM timeball.lane
    CROSS JOIN LATERAL (
        SELECT count(line.at) AS n, min(line.at) AS first
        FROM timeball.line_of(lane.id, p_most) AS line WHERE line.live
    ) AS waiting
    CROSS JOIN LATERAL (
        SELECT count(*) AS n
        FROM (SELECT FROM timeball.held WHERE held.lane = lane.id LIMIT p_most) AS one
    ) AS back
    UNION ALL
    SELECT lane.queue, 0, 0, turn.job_id, NULL, NULL, NULL, NULL, NULL
    FROM timeball.newest_leases() AS newest
    JOIN timeball.lane ON lane.id = newest.lane
    CROSS JOIN LATERAL (
        SELECT turn.* FROM (
            SELECT granted.* FROM timeball.lease
            CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted
            WHERE lease.worker = newest.worker AND lease.lane = newest.lane
              AND lease.seq > newest.floor
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
        WHERE lease.worker = newest.worker AND lease.lane = newest.lane
          AND lease.seq = newest.floor
    ) AS turn (job_id, turn)
    WHERE EXISTS (SELECT FROM timeball.job WHERE job.id = turn.job_id)
    UNION ALL
    SELECT queue.name, 0, 0, NULL, NULL, queue.paused_at, queue.paused_by, NULL, queue.max_depth
    FROM timeball.queue
    UNION ALL
    SELECT limiter.name, 0, 0, NULL, NULL, NULL, NULL, limiter.at_once, NULL
    FROM timeball.limiter WHERE limiter.scope = 'queue'
) AS seen (name, pending, held, job_id, first, paused_at, paused_by, at_once, max_depth)
CROSS JOIN clock
GROUP BY seen.name
ORDER BY seen.name COLLATE "C";
$function$;
