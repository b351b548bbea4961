-- Let queued runs start whose earlier runs have ended, and return how many there were.
-- A schedule's first run that has not ended may start; where it has none, nothing is queued.
CREATE OR REPLACE FUNCTION timeball.admit(p_limit integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_schedules bigint[];
    v_admitted integer;
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

    WITH gone AS (
        DELETE FROM timeball.held
        WHERE held.reason = 'overlap' AND held.job_id IN (
            SELECT (timeball.open_runs(schedule.runs))[1]
            FROM timeball.schedule WHERE schedule.id = ANY (v_schedules))
        RETURNING held.*
    ),
    entered AS (
        INSERT INTO timeball.entry
            (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at)
        SELECT lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at
        FROM gone ORDER BY job_id
        RETURNING entry.job_id
    )
    SELECT count(*) INTO v_admitted FROM entered;

    UPDATE timeball.schedule SET runs = timeball.open_runs(schedule.runs), queued = EXISTS (
        SELECT FROM timeball.held
        WHERE held.job_id = ANY (schedule.runs) AND held.reason = 'overlap')
    FROM (
        SELECT schedule.id FROM timeball.schedule
        WHERE schedule.id = ANY (v_schedules) ORDER BY schedule.id FOR NO KEY UPDATE
    ) AS free
    WHERE schedule.id = free.id;
    RETURN v_admitted;
END
$function$;
