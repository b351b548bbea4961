-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Cancel the runs of some schedules that have not ended, by the rules of any cancel.
-- Lanes are locked in the order of a claim, jobs in that of their ids. One that is moved at the
-- same moment is followed out of that order: should two wait for each other by it, the server ends
-- one of them, and the firing is sent again.
CREATE OR REPLACE FUNCTION timeball.replace_runs(p_schedules bigint[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_jobs bigint[] := array(
        SELECT run.id
        FROM timeball.schedule
        CROSS JOIN LATERAL unnest(timeball.open_runs(schedule.runs)) AS run (id)
        WHERE schedule.id = ANY (p_schedules)
        ORDER BY run.id);
    v_lane integer;
BEGIN
    FOR v_lane IN
        SELECT lane.id FROM timeball.lane
        WHERE lane.id IN (
            SELECT coalesce(moved.lane, job.lane) FROM timeball.job
            LEFT JOIN timeball.moved ON moved.job_id = job.id
            WHERE job.id = ANY (v_jobs))
        ORDER BY lane.priority DESC, lane.id
    LOOP
        PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);
    END LOOP;
    FOR v_number IN 1 .. cardinality(v_jobs) LOOP
        PERFORM timeball.cancel_job(v_jobs[v_number]);
    END LOOP;
    PERFORM timeball.unlink(v_jobs);
END
$function$;
