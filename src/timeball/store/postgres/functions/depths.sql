-- Return how many jobs of some queues wait in each state, and since when the first pending one
-- has. Counting ends at p_most per lane, and at p_most held jobs in all: a look that is taken
-- every few seconds must not read a queue of millions. No lock is taken.
--
-- What a lane has not granted lies beyond the position of its newest lease, or is of a
-- transaction that its newest snapshot does not show: see `claim`.
-- Plan: pinned, so that each lane is read through entry_order from there on.
CREATE OR REPLACE FUNCTION timeball.depths(p_queues text[], p_most integer)
RETURNS TABLE (queue text, state text, jobs bigint, oldest_s double precision)
LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH place AS MATERIALIZED (
    SELECT lane.id AS lane, lane.queue, newest.*
    FROM timeball.lane
    CROSS JOIN LATERAL (
        SELECT coalesce(max(lease.seq), 0) AS seq FROM timeball.lease WHERE lease.lane = lane.id
    ) AS last
    LEFT JOIN LATERAL (
        SELECT lease.prev, lease.cur, lease.pos_xid, lease.pos_id,
            least(lease.pos_xid, pg_snapshot_xmin(lease.cur)) AS low_xid,
            CASE WHEN lease.pos_xid <= pg_snapshot_xmin(lease.cur) THEN lease.pos_id
                ELSE 0 END AS low_id
        FROM timeball.lease WHERE lease.lane = lane.id AND lease.seq = last.seq
    ) AS newest ON true
    WHERE lane.queue = ANY (p_queues)
)
SELECT place.queue, 'pending', sum(waiting.n)::bigint,
    extract(epoch FROM timeball.now() - min(waiting.first))::double precision
FROM place
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(found.at) AS first
    FROM (
        SELECT entry.at
        FROM timeball.entry
        WHERE entry.lane = place.lane
          AND (entry.xid, entry.job_id)
              > (coalesce(place.low_xid, '0'), coalesce(place.low_id, 0))
          AND entry.xid < pg_snapshot_xmax(pg_current_snapshot())  -- not what another server left
          AND (place.cur IS NULL
              OR NOT pg_visible_in_snapshot(entry.xid, place.cur)
              OR (NOT pg_visible_in_snapshot(entry.xid, place.prev)
                  AND (entry.xid, entry.job_id) > (place.pos_xid, place.pos_id)))
          AND (
              SELECT 1 FROM timeball.ended
              WHERE ended.job_id = entry.job_id AND ended.turn = entry.turn
          ) IS NULL
        LIMIT p_most
    ) AS found
) AS waiting
GROUP BY place.queue
UNION ALL
SELECT place.queue, held.state, count(*), NULL
FROM (SELECT * FROM timeball.held ORDER BY held.job_id DESC LIMIT p_most) AS held
JOIN place ON place.lane = held.lane
GROUP BY place.queue, held.state;
$function$;
