-- Return how many seconds from now one of those that wait for a rate may come, a hundredth at
-- least; null where nobody knows of one.
CREATE OR REPLACE FUNCTION timeball.next_opening() RETURNS double precision LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT greatest(0.01, min(permit.opens_us) / 1e6 - extract(epoch FROM timeball.clock()))
FROM timeball.permit
WHERE permit.opens_us > extract(epoch FROM timeball.clock()) * 1000000
  AND (EXISTS (SELECT FROM timeball.held WHERE held.line = permit.name)
    OR EXISTS (SELECT FROM timeball.held
        WHERE held.state = 'pending' AND held.reason = 'key'
          AND 'key:' || held.key = permit.name AND held.key = substr(permit.name, 5)));
$function$;
