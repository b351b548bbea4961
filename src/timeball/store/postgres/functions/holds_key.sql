-- Return whether a job still holds its unique key: until it has ended, or begun.
CREATE OR REPLACE FUNCTION timeball.holds_key(p_job uuid, p_until_started boolean)
RETURNS boolean LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT EXISTS (
    SELECT FROM timeball.jobs
    WHERE jobs.uuid = p_job
      AND jobs.state NOT IN ('succeeded', 'failed', 'cancelled', 'skipped')
      AND NOT (p_until_started AND (jobs.attempts > 0 OR jobs.state = 'running')));
$function$;
