-- Return the limit on starts that holds for a name such as queue:mail, kind:a or key:tenant-7: of a
-- key its own, else that of the longest name with * that fits; no row where there is none. It
-- becomes a part of the queries that ask, and has no settings for that.
CREATE OR REPLACE FUNCTION timeball.rate_of(p_name text) RETURNS SETOF timeball.limiter
LANGUAGE sql STABLE
AS $function$
SELECT limiter.* FROM timeball.limiter
WHERE limiter.starts IS NOT NULL
  AND limiter.scope = split_part(p_name, ':', 1)
  AND (limiter.name = substr(p_name, strpos(p_name, ':') + 1)
    OR limiter.scope = 'key' AND limiter.name LIKE '%*'
    AND starts_with(substr(p_name, strpos(p_name, ':') + 1), left(limiter.name, -1)))
ORDER BY limiter.name = substr(p_name, strpos(p_name, ':') + 1) DESC, length(limiter.name) DESC
LIMIT 1;
$function$;
