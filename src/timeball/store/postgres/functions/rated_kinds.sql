-- Return the kinds whose starts are limited: their jobs, but for those with a key, which wait in its
-- line first, come to their lanes out of the line of the limit, as far as permits can be expected.
-- In a lane they would stand in the way of all who have to be claimed before it is known.
CREATE OR REPLACE FUNCTION timeball.rated_kinds() RETURNS text[] LANGUAGE sql STABLE
AS $function$
SELECT array(
    SELECT limiter.name FROM timeball.limiter
    WHERE limiter.scope = 'kind' AND limiter.starts IS NOT NULL);
$function$;
