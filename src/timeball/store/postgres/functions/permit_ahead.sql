-- Return how many permits could be had by those who ask at an instant (in microseconds), in all. See
-- core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_ahead(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint
) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_room bigint;
BEGIN
    IF p_rate.burst IS NOT NULL OR p_now < p_permit.newest_us THEN
        RETURN timeball.permit_room(p_permit, p_rate, p_now);
    END IF;
    SELECT p_rate.starts - coalesce(sum(u.n), 0) INTO v_room
    FROM unnest(p_permit.untils, p_permit.counts) AS u (until, n)
    WHERE u.until + p_rate.window_us > p_now + 200000;
    IF p_rate.spread THEN  -- one after the other, more than what comes together
        v_room := least(v_room, timeball.permit_most(p_rate) - ceil((
            greatest(0, timeball.permit_full(p_permit, p_rate) - p_now::numeric * p_rate.starts)
            - 200000::numeric * p_rate.starts) / p_rate.window_us));
    END IF;
    RETURN greatest(0, v_room);
END
$function$;
