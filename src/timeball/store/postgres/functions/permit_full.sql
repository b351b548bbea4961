-- Return when the bucket of a burst is full again, in microseconds times starts: each grant is
-- taken as late as it may be used. See core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_full(
    p_full numeric, p_untils bigint[], p_counts integer[], p_rate timeball.limiter
) RETURNS numeric LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_grant record;
BEGIN
    FOR v_grant IN
        SELECT u.until, u.n FROM unnest(p_untils, p_counts) AS u (until, n)
        WHERE u.n > 0 ORDER BY u.until
    LOOP
        p_full := greatest(p_full, v_grant.until::numeric * p_rate.starts)
            + v_grant.n::numeric * p_rate.window_us;
    END LOOP;
    RETURN p_full;
END
$function$;
