-- Put held jobs at the back of their lanes, and return how many; those with a key wait on,
-- until `admit_keys` finds room for them. Whoever has waited for a rate keeps his place. The rows must be locked.
CREATE OR REPLACE FUNCTION timeball.line_up(p_jobs bigint[]) RETURNS integer LANGUAGE sql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH gone AS (
    DELETE FROM timeball.held WHERE held.job_id = ANY (p_jobs) RETURNING held.*
),
waiting AS (
    INSERT INTO timeball.held
        (job_id, turn, state, lane, reason, kind, key, attempts, failures, crashes, delay_s,
            expires_at, at)
    SELECT job_id, turn, 'pending', lane, 'key', kind, key, attempts, failures, crashes, delay_s,
        expires_at, CASE WHEN line IS NULL THEN timeball.now() ELSE at END
    FROM gone WHERE key IS NOT NULL ORDER BY job_id
),
entered AS (
    INSERT INTO timeball.entry
        (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, lined_at)
    SELECT lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at,
        CASE WHEN line IS NOT NULL THEN at END
    FROM gone WHERE key IS NULL ORDER BY job_id
    RETURNING 1
)
SELECT count(*)::integer FROM entered;
$function$;
