-- Lock those of some jobs that wait for their parents, and return whether all of them were free.
CREATE OR REPLACE FUNCTION timeball.lock_free(p_jobs bigint[]) RETURNS boolean LANGUAGE sql
SET enable_seqscan = off
AS $function$
WITH free AS MATERIALIZED (
    SELECT held.job_id FROM timeball.held
    WHERE held.job_id = ANY (p_jobs) AND held.state = 'waiting'
    ORDER BY held.job_id
    FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM free) = count(*) FROM timeball.held
WHERE held.job_id = ANY (p_jobs) AND held.state = 'waiting';
$function$;
