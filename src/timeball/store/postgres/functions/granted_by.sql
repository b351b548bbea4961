-- Return who was granted an entry's turn, and when; no row where the cursor has not passed it.
-- By bisection: a lane's leases that have passed an entry are the newest ones, and the first
-- of them granted it. To look into one after the other would cost a job that has been running
-- for a day all the leases of that day.
CREATE OR REPLACE FUNCTION timeball.granted_by(p_lane integer, p_xid xid8, p_job_id bigint)
RETURNS TABLE (worker bigint, at timestamptz) LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $function$
DECLARE
    v_low bigint;
    v_high bigint := (SELECT max(lease.seq) FROM timeball.lease WHERE lease.lane = p_lane);
    v_middle bigint;
BEGIN
    -- Earlier ones name transactions of another server.
    SELECT home.first_seq INTO v_low FROM timeball.home WHERE home.first_seq <= v_high;
    v_low := coalesce(v_low, 1);
    WHILE v_low < v_high LOOP
        v_middle := v_low + (v_high - v_low) / 2;
        IF (
            SELECT pg_visible_in_snapshot(p_xid, lease.prev)
                OR (pg_visible_in_snapshot(p_xid, lease.cur)
                    AND (p_xid, p_job_id) <= (lease.pos_xid, lease.pos_id))
            FROM timeball.lease
            WHERE lease.lane = p_lane AND lease.seq >= v_middle
            ORDER BY lease.seq LIMIT 1
        ) THEN
            v_high := v_middle;
        ELSE
            v_low := v_middle + 1;
        END IF;
    END LOOP;
    RETURN QUERY
    SELECT first.worker, first.at
    FROM (
        SELECT lease.worker, lease.at, lease.job_ids FROM timeball.lease
        WHERE lease.lane = p_lane AND lease.seq >= v_low
        ORDER BY lease.seq LIMIT 1
    ) AS first
    WHERE p_job_id = ANY (first.job_ids);
END
$function$;
