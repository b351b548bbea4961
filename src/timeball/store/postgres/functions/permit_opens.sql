-- Return from which instant on (in microseconds) there can be so many permits, by what is known
-- now; the present one, if there are. Of an even spacing these may be more than come together: then
-- for the last one. See core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_opens(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint, p_n integer
) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_opens bigint := greatest(p_now, p_permit.newest_us);
BEGIN
    IF timeball.permit_room(p_permit, p_rate, p_now) >= p_n THEN
        RETURN p_now;
    END IF;
    IF p_rate.burst IS NOT NULL OR p_rate.spread THEN
        v_opens := greatest(v_opens, ceil((
            greatest(timeball.permit_full(p_permit, p_rate),
                CASE WHEN p_rate.spread THEN p_now::numeric * p_rate.starts END)
            - (timeball.permit_most(p_rate) - p_n)::numeric * p_rate.window_us) / p_rate.starts));
    END IF;
    IF p_rate.burst IS NULL THEN
        SELECT greatest(v_opens, max(freed.until + p_rate.window_us)) INTO v_opens
        FROM (
            SELECT u.until, sum(u.n) OVER (ORDER BY u.until, u.place) - u.n AS before,
                sum(u.n) OVER () - p_rate.starts + p_n AS excess
            FROM unnest(p_permit.untils, p_permit.counts) WITH ORDINALITY AS u (until, n, place)
        ) AS freed
        WHERE freed.before < freed.excess;
    END IF;
    RETURN v_opens;
END
$function$;
