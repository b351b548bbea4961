-- Return the ranges of (xid, job_id) that a window still holds beyond a position, in order.
-- The window (prev, cur] of a lane holds the entries visible in cur and not in prev: those of
-- transactions that were in progress at prev and are visible in cur, then the gaps between
-- those still in progress at cur, so that a long transaction with a million entries is never
-- walked. See `claim`. One query, so that it becomes a part of those that ask.
CREATE OR REPLACE FUNCTION timeball.ahead(
    p_prev pg_snapshot, p_cur pg_snapshot, p_pos_xid xid8, p_pos_id bigint
) RETURNS TABLE (lo_xid xid8, lo_id bigint, hi_xid xid8, hi_id bigint) LANGUAGE sql STABLE
AS $function$
-- One lower bound per stretch: of two, the index would start at the wrong one.
SELECT CASE WHEN begun THEN p_pos_xid ELSE stretch.lo_xid END,
    CASE WHEN begun THEN p_pos_id ELSE stretch.lo_id END, stretch.hi_xid, stretch.hi_id
FROM (
    SELECT x, 0::bigint, x, 9223372036854775807
    FROM pg_snapshot_xip(p_prev) AS x WHERE pg_visible_in_snapshot(x, p_cur)
    UNION ALL
    SELECT gap.x, gap.id, lead(gap.x, 1, pg_snapshot_xmax(p_cur)) OVER ends, 0
    FROM (
        SELECT pg_snapshot_xmax(p_prev), 0::bigint
        UNION ALL
        SELECT x, 9223372036854775807
        FROM pg_snapshot_xip(p_cur) AS x WHERE x >= pg_snapshot_xmax(p_prev)
    ) AS gap (x, id)
    WINDOW ends AS (ORDER BY gap.x, gap.id)
) AS stretch (lo_xid, lo_id, hi_xid, hi_id),
    LATERAL (SELECT (stretch.lo_xid, stretch.lo_id) < (p_pos_xid, p_pos_id)) AS a (begun)
WHERE (stretch.hi_xid, stretch.hi_id) > (p_pos_xid, p_pos_id)
  AND (stretch.hi_xid, stretch.hi_id) > (stretch.lo_xid, stretch.lo_id)
ORDER BY stretch.hi_xid, stretch.hi_id;
$function$;
