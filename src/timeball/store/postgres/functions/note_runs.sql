-- Remember jobs that were added to a schedule beside its occurrences.
CREATE OR REPLACE FUNCTION timeball.note_runs(p_schedule bigint, p_jobs bigint[], p_last uuid)
RETURNS void LANGUAGE sql
AS $function$
UPDATE timeball.schedule SET last_job = p_last, runs = timeball.runs_after(
    schedule.overlap_runs, schedule.runs, schedule.queued, p_jobs)
WHERE schedule.id = p_schedule;
$function$;
