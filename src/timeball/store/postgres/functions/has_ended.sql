-- Return whether a job has reached a terminal state and was not revived since, or is gone.
CREATE OR REPLACE FUNCTION timeball.has_ended(p_job bigint) RETURNS boolean LANGUAGE sql STABLE
AS $function$
SELECT NOT EXISTS (SELECT FROM timeball.job WHERE job.id = p_job) OR EXISTS (
    SELECT FROM timeball.ended
    WHERE ended.job_id = p_job
      AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
      AND NOT EXISTS (
          SELECT FROM timeball.event
          WHERE event.job_id = ended.job_id AND event.turn = ended.turn
            AND event.kind = 'revived')
);
$function$;
