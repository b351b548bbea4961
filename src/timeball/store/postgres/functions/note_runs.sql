-- Remember jobs that were added to a schedule beside its occurrences.
CREATE OR REPLACE FUNCTION timeball.note_runs(p_schedule bigint, p_jobs bigint[], p_last uuid)
RETURNS void LANGUAGE sql
AS $function$
UPDATE timeball.schedule SET last_job = p_last,
    runs = CASE schedule.overlap_runs
        WHEN 'allow' THEN p_jobs[cardinality(p_jobs):]
        ELSE array(
            SELECT run.id FROM unnest(timeball.open_runs(schedule.runs) || p_jobs)
                WITH ORDINALITY AS run (id, n)
            GROUP BY run.id ORDER BY min(run.n))
    END
WHERE schedule.id = p_schedule;
$function$;
