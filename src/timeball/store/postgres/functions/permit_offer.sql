-- Return from which instant on (in microseconds), and how many permits may be granted, p_want at
-- most; 0: none soon. Not before p_now, and later than it only where p_ahead says so. See
-- core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_offer(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint, p_want integer,
    p_ahead boolean, OUT o_at bigint, OUT o_n integer
) LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_latest bigint := p_now + 200000;
    v_first bigint;
BEGIN
    o_at := p_now;
    o_n := least(p_want, timeball.permit_room(p_permit, p_rate, p_now));
    IF o_n > 0 OR NOT p_ahead OR p_now < p_permit.newest_us THEN
        RETURN;
    END IF;
    v_first := timeball.permit_opens(p_permit, p_rate, p_now, 1);
    IF v_first <= v_latest THEN
        o_n := least(p_want,
            timeball.permit_room(p_permit, p_rate, least(v_first + 10000, v_latest)));
        o_at := timeball.permit_opens(p_permit, p_rate, p_now, o_n);
    END IF;
END
$function$;
