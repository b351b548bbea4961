-- Return the most permits that one instant gives; see core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_most(p_rate timeball.limiter) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $function$
SELECT CASE
    WHEN p_rate.burst IS NOT NULL THEN p_rate.burst::bigint
    WHEN NOT p_rate.spread THEN p_rate.starts::bigint
    ELSE greatest(1, ceil(p_rate.starts::numeric * 50000 / greatest(p_rate.window_us, 1000000)))::bigint
END;
$function$;
