-- Return how many jobs may come because permits of a limit can be expected, p_most at most: beside
-- those that are on their way to ask for theirs. Takes none: permits that nobody uses would pile up.
CREATE OR REPLACE FUNCTION timeball.expected(p_name text, p_most integer) RETURNS integer
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $function$
DECLARE
    v_rate timeball.limiter;
    v_permit timeball.permit;
    v_now bigint := extract(epoch FROM timeball.clock()) * 1000000;
BEGIN
    SELECT * INTO v_rate FROM timeball.rate_of(p_name);
    IF NOT FOUND THEN
        RETURN p_most;
    END IF;
    SELECT * INTO v_permit FROM timeball.permit WHERE permit.name = p_name;
    IF NOT FOUND THEN
        RETURN least(p_most, timeball.permit_most(v_rate));
    ELSIF v_permit.opens_us > v_now THEN
        RETURN 0;
    END IF;
    RETURN least(p_most, greatest(0, timeball.permit_ahead(v_permit, v_rate, v_now)
        - CASE WHEN v_permit.coming_until > v_now THEN v_permit.coming ELSE 0 END));
END
$function$;
