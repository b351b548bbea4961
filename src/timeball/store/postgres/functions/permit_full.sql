-- Return when the bucket of a burst, or of an even spacing, is full again, in microseconds times
-- starts: of a burst each grant is taken as late as it may be used. See core/permits.py, which says
-- the same.
--
-- No law lets a bucket owe more than the first line says; the row may be in units of the law before.
CREATE OR REPLACE FUNCTION timeball.permit_full(
    p_permit timeball.permit, p_rate timeball.limiter
) RETURNS numeric LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_full numeric := least(p_permit.bucket_full,
        (p_permit.newest_us + 1221000)::numeric * p_rate.starts
            + timeball.permit_most(p_rate)::numeric * p_rate.window_us);
    v_grant record;
BEGIN
    IF p_rate.burst IS NULL THEN
        RETURN v_full;
    END IF;
    FOR v_grant IN
        SELECT u.until, u.n FROM unnest(p_permit.untils, p_permit.counts) AS u (until, n)
        WHERE u.n > 0 ORDER BY u.until
    LOOP
        v_full := greatest(v_full, v_grant.until::numeric * p_rate.starts)
            + v_grant.n::numeric * p_rate.window_us;
    END LOOP;
    RETURN v_full;
END
$function$;
