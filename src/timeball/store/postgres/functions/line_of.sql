-- Return the first p_most entries of a lane that its cursor has not passed, in the order in
-- which they will be granted, and whether each still may be: some were cancelled meanwhile.
-- Nothing is locked: it says how things were. One query, so that it becomes a part of those
-- that ask, and is read only as far as they do.
CREATE OR REPLACE FUNCTION timeball.line_of(p_lane integer, p_most integer)
RETURNS TABLE (job_id bigint, turn integer, at timestamptz, live boolean) LANGUAGE sql STABLE
AS $function$
SELECT found.job_id, found.turn, found.at, (
        SELECT 1 FROM timeball.ended
        WHERE ended.job_id = found.job_id AND ended.turn = found.turn
    ) IS NULL
FROM (SELECT 1) AS one (row)
LEFT JOIN LATERAL (
    SELECT * FROM timeball.lease WHERE lease.lane = p_lane ORDER BY lease.seq DESC LIMIT 1
) AS newest ON true
-- What has been committed since is the window after the one that is being read.
CROSS JOIN LATERAL (
    SELECT newest.prev, newest.cur, newest.pos_xid, newest.pos_id WHERE newest.seq IS NOT NULL
    UNION ALL
    SELECT coalesce(newest.cur, '1:1:'), pg_current_snapshot(), '0', 0
) AS place (prev, cur, pos_xid, pos_id)
CROSS JOIN LATERAL timeball.ahead(place.prev, place.cur, place.pos_xid, place.pos_id) AS ahead
CROSS JOIN LATERAL (
    SELECT entry.job_id, entry.turn, entry.at FROM timeball.entry
    WHERE entry.lane = p_lane
      AND (entry.xid, entry.job_id) > (ahead.lo_xid, ahead.lo_id)
      AND (entry.xid, entry.job_id) <= (ahead.hi_xid, ahead.hi_id)
    ORDER BY entry.xid, entry.job_id
) AS found
LIMIT p_most;
$function$;
