-- Return how many seconds from now one of those that wait for a rate may come, a hundredth at
-- least; null where nobody knows of one.
--
-- Looks at the next 100 limits that open: of 100,000 tenants most have nobody who waits. Where none
-- of them has, it is the last one's instant, and then the next are looked at. No EXISTS: PostgreSQL
-- 18 may read all that is held into a hash table for one, whatever is forbidden.
CREATE OR REPLACE FUNCTION timeball.next_opening() RETURNS double precision LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
SELECT greatest(0.01, first.opens_us / 1e6 - extract(epoch FROM timeball.clock()))
FROM (
    SELECT coalesce(
        min(next.opens_us) FILTER (WHERE coalesce(
            (SELECT true FROM timeball.held WHERE held.line = next.name LIMIT 1),
            (SELECT true FROM timeball.held
                WHERE held.state = 'pending' AND held.reason = 'key'
                  AND 'key:' || held.key = next.name AND held.key = substr(next.name, 5) LIMIT 1))),
        max(next.opens_us) FILTER (WHERE next.place = 100)) AS opens_us
    FROM (
        SELECT permit.name, permit.opens_us, row_number() OVER (ORDER BY permit.opens_us) AS place
        FROM timeball.permit
        WHERE permit.opens_us > (SELECT extract(epoch FROM timeball.clock()) * 1000000)::bigint
        ORDER BY permit.opens_us LIMIT 100
    ) AS next
) AS first
WHERE first.opens_us IS NOT NULL;
$function$;
