-- Return the next p_limit keys after p_after that jobs wait for, and the last of them; '' where
-- there is none after it. Steps from key to key: a million jobs of one key are one step.
CREATE OR REPLACE FUNCTION timeball.waiting_keys(
    p_after text, p_limit integer, OUT o_keys text[], OUT o_last text
) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $function$
WITH RECURSIVE step AS (
    (SELECT held.key, 1 AS n FROM timeball.held
     WHERE held.state = 'pending' AND held.reason = 'key' AND held.key > p_after
     ORDER BY held.key LIMIT 1)
    UNION ALL
    SELECT next.key, step.n + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT held.key FROM timeball.held
        WHERE held.state = 'pending' AND held.reason = 'key' AND held.key > step.key
        ORDER BY held.key LIMIT 1
    ) AS next
    WHERE step.n < p_limit
)
SELECT array_agg(step.key), CASE WHEN count(*) = p_limit THEN max(step.key) ELSE '' END FROM step;
$function$;
