-- Return the line for a job that got no permit: that of the limit on its kind or its queue that
-- opens last; null where neither has one. (Those of a key wait in the line of their key.)
CREATE OR REPLACE FUNCTION timeball.rate_line(p_lane integer, p_kind text) RETURNS text
LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT named.name
FROM (
    SELECT 'kind:' || p_kind
    UNION ALL
    SELECT 'queue:' || lane.queue FROM timeball.lane WHERE lane.id = p_lane
) AS named (name)
LEFT JOIN timeball.permit ON permit.name = named.name
WHERE EXISTS (SELECT FROM timeball.rate_of(named.name))
ORDER BY coalesce(permit.opens_us, 0) DESC, named.name COLLATE "C" LIMIT 1;
$function$;
