-- Return whether a job has reached a terminal state.
CREATE OR REPLACE FUNCTION timeball.has_ended(p_job bigint) RETURNS boolean LANGUAGE sql STABLE
AS $function$
SELECT EXISTS (
    SELECT FROM timeball.ended
    WHERE ended.job_id = p_job
      AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
);
$function$;
