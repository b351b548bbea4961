-- Return how many permits may be granted at an instant (in microseconds), by what was granted
-- before. See core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_room(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint
) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_room bigint := p_rate.starts;
BEGIN
    IF p_now < p_permit.newest_us THEN
        RETURN 0;
    END IF;
    IF p_rate.burst IS NOT NULL OR p_rate.spread THEN
        v_room := floor((timeball.permit_most(p_rate)::numeric * p_rate.window_us
            - greatest(0, timeball.permit_full(p_permit, p_rate) - p_now::numeric * p_rate.starts))
            / p_rate.window_us);
    END IF;
    IF p_rate.burst IS NULL THEN
        v_room := least(v_room, p_rate.starts - (
            SELECT coalesce(sum(u.n), 0) FROM unnest(p_permit.untils, p_permit.counts) AS u (until, n)
            WHERE u.until + p_rate.window_us > p_now));
    END IF;
    RETURN greatest(0, v_room);
END
$function$;
