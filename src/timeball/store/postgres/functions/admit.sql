-- Let queued runs start whose earlier runs have ended, and return how many there were.
-- A schedule's first run that has not ended may start; where it has none, nothing is queued.
CREATE OR REPLACE FUNCTION timeball.admit(p_limit integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_schedules bigint[];
    v_jobs bigint[];
BEGIN
    PERFORM timeball.durable();
    v_schedules := array(
        SELECT schedule.id FROM timeball.schedule
        WHERE schedule.queued AND coalesce((
            SELECT held.reason = 'overlap' FROM unnest((timeball.open_runs(schedule.runs))[1:1]) AS run (id)
            LEFT JOIN timeball.held ON held.job_id = run.id), NOT EXISTS (
                SELECT FROM unnest(timeball.open_runs(schedule.runs))))
        ORDER BY schedule.id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED);
    IF v_schedules = '{}' THEN
        RETURN 0;
    END IF;

    v_jobs := array(
        SELECT held.job_id FROM timeball.held
        WHERE held.reason = 'overlap' AND held.job_id IN (
            SELECT (timeball.open_runs(schedule.runs))[1]
            FROM timeball.schedule WHERE schedule.id = ANY (v_schedules))
        ORDER BY held.job_id
        FOR UPDATE);
    PERFORM timeball.line_up(v_jobs);

    UPDATE timeball.schedule SET runs = timeball.open_runs(schedule.runs), queued = EXISTS (
        SELECT FROM timeball.held
        WHERE held.job_id = ANY (schedule.runs) AND held.reason = 'overlap')
    FROM (
        SELECT schedule.id FROM timeball.schedule
        WHERE schedule.id = ANY (v_schedules) ORDER BY schedule.id FOR NO KEY UPDATE
    ) AS free
    WHERE schedule.id = free.id;
    RETURN cardinality(v_jobs);
END
$function$;
