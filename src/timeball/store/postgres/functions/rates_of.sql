-- Return the names of the limits of which a job's start needs permits, in their order.
CREATE OR REPLACE FUNCTION timeball.rates_of(p_queue text, p_kind text, p_key text) RETURNS text[]
LANGUAGE sql STABLE
AS $function$
SELECT coalesce(array_agg(named.name ORDER BY named.name COLLATE "C"), '{}')
FROM (VALUES ('key:' || p_key), ('kind:' || p_kind), ('queue:' || p_queue)) AS named (name)
WHERE named.name IS NOT NULL AND EXISTS (SELECT FROM timeball.rate_of(named.name));
$function$;
