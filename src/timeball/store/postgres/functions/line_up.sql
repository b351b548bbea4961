-- Put held jobs at the back of their lanes, and return how many. Those with a key wait on, until
-- `admit_keys` finds room for them, and so do those of a kind whose starts are limited, until they
-- leave its line; whoever has waited for a rate keeps his place. The rows must be locked.
CREATE OR REPLACE FUNCTION timeball.line_up(p_jobs bigint[]) RETURNS integer LANGUAGE sql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH gone AS (
    DELETE FROM timeball.held WHERE held.job_id = ANY (p_jobs) RETURNING held.*
),
ripe AS MATERIALIZED (
    SELECT gone.*, gone.key IS NULL AND gone.line IS NULL AND gone.kind = ANY (rated.kinds) AS rated
    FROM (SELECT timeball.rated_kinds()) AS rated (kinds) CROSS JOIN gone
),
waiting AS (
    INSERT INTO timeball.held
        (job_id, turn, state, lane, reason, kind, key, attempts, failures, crashes, delay_s,
            expires_at, at, line)
    SELECT job_id, turn, 'pending', lane, CASE WHEN rated THEN 'rate' ELSE 'key' END, kind, key,
        attempts, failures, crashes, delay_s, expires_at,
        CASE WHEN line IS NULL THEN timeball.now() ELSE at END,
        CASE WHEN rated THEN 'kind:' || kind END
    FROM ripe WHERE key IS NOT NULL OR rated ORDER BY job_id
),
entered AS (
    INSERT INTO timeball.entry
        (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, lined_at)
    SELECT lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at,
        CASE WHEN line IS NOT NULL THEN at END
    FROM ripe WHERE key IS NULL AND NOT rated ORDER BY job_id
    RETURNING 1
)
SELECT count(*)::integer FROM entered;
$function$;
