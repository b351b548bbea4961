-- Look at the next p_limit leases and delete those that are as old as p_keep_s and a day, since
-- their claims may be sent again, and of whose jobs none is left; never the newest of a lane,
-- which is its cursor. Returns the last lease that was looked at; nulls where there is none.
CREATE OR REPLACE FUNCTION timeball.trim_leases(
    p_lane integer, p_seq bigint, p_limit integer, p_keep_s double precision,
    OUT o_lane integer, OUT o_seq bigint
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_old timestamptz := timeball.now() - make_interval(secs => greatest(p_keep_s, 86400));
    v_at timestamptz;
BEGIN
    SELECT lease.lane, lease.seq, lease.at INTO o_lane, o_seq, v_at
    FROM (
        SELECT lease.lane, lease.seq, lease.at FROM timeball.lease
        WHERE (lease.lane, lease.seq) > (p_lane, p_seq)
        ORDER BY lease.lane, lease.seq LIMIT p_limit
    ) AS lease
    ORDER BY lease.lane DESC, lease.seq DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM timeball.lease
    WHERE (lease.lane, lease.seq) > (p_lane, p_seq) AND (lease.lane, lease.seq) <= (o_lane, o_seq)
      AND lease.at <= v_old
      AND EXISTS (
          SELECT FROM timeball.lease AS newer
          WHERE newer.lane = lease.lane AND newer.seq > lease.seq)
      AND NOT EXISTS (SELECT FROM timeball.job WHERE job.id = ANY (lease.job_ids));
    IF v_at > v_old THEN  -- so are all later ones of this lane
        o_seq := 9223372036854775807;
    END IF;
END
$function$;
