-- Return how many jobs of a key may be under way at once: by its own limit, else by that of
-- the longest name with * that fits, else 1.
CREATE OR REPLACE FUNCTION timeball.limit_of(p_key text) RETURNS integer LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT coalesce(
    (SELECT limiter.at_once FROM timeball.limiter
     WHERE limiter.scope = 'key' AND limiter.name = p_key AND limiter.at_once IS NOT NULL),
    (SELECT limiter.at_once FROM timeball.limiter
     WHERE limiter.scope = 'key' AND limiter.name LIKE '%*' AND limiter.at_once IS NOT NULL
       AND starts_with(p_key, left(limiter.name, -1))
     ORDER BY length(limiter.name) DESC LIMIT 1),
    1);
$function$;
