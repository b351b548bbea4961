-- Add one extra job of a schedule and return its id; no row where the schedule is gone.
CREATE OR REPLACE FUNCTION timeball.run_now(p_schedule bigint, p_jobs jsonb)
RETURNS SETOF bigint LANGUAGE plpgsql
AS $function$
DECLARE
    v_job record;
BEGIN
    PERFORM 1 FROM timeball.schedule
    WHERE schedule.id = p_schedule AND schedule.state <> 'retired' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT added.id, added.uuid INTO v_job FROM timeball.submit(p_jobs, p_bounded => false) AS added;
    PERFORM timeball.note_runs(p_schedule, array[v_job.id], v_job.uuid);
    RETURN NEXT v_job.id;
END
$function$;
