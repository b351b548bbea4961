-- Return whether a lane's cursor has passed an entry, that is, whether its turn was granted.
-- Only where it is asked under the lane's lock is the answer still true a moment later.
CREATE OR REPLACE FUNCTION timeball.passed(p_lane integer, p_xid xid8, p_job_id bigint)
RETURNS boolean LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT coalesce((
    SELECT pg_visible_in_snapshot(p_xid, lease.prev)
        OR (pg_visible_in_snapshot(p_xid, lease.cur)
            AND (p_xid, p_job_id) <= (lease.pos_xid, lease.pos_id))
    FROM timeball.lease
    WHERE lease.lane = p_lane
    ORDER BY lease.seq DESC
    LIMIT 1
), false);
$function$;
