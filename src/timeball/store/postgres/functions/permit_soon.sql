-- Return when to ask for a permit (in microseconds): a little before there can be one more than
-- those that are on their way to ask for theirs, but no later than when these are waited for no
-- longer. See core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_soon(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint
) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_coming integer := CASE WHEN p_permit.coming_until > p_now THEN p_permit.coming ELSE 0 END;
    v_most bigint := CASE WHEN p_rate.spread
        THEN least(p_rate.starts, timeball.permit_most(p_rate)
            + 200000::bigint * p_rate.starts / p_rate.window_us)
        ELSE timeball.permit_most(p_rate) END;
    v_soon bigint;
BEGIN
    IF v_coming < v_most THEN
        v_soon := greatest(p_now, p_permit.newest_us,
            timeball.permit_opens(p_permit, p_rate, p_now, v_coming + 1)
            - CASE WHEN p_rate.burst IS NULL THEN 100000 ELSE 0 END);
    END IF;
    RETURN least(v_soon, CASE WHEN v_coming > 0 THEN p_permit.coming_until END);
END
$function$;
