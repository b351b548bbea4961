-- event: release (waiting -> pending, scheduled)
-- Let jobs go on that wait for no parent any more: at once, or at their own instant. Returns the
-- keys of those that wait for room among the jobs of their key now. Their rows must be locked.
CREATE OR REPLACE FUNCTION timeball.set_free(p_jobs bigint[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_later bigint[];
    v_now bigint[];
    v_keys text[];
BEGIN
    IF p_jobs = '{}' THEN
        RETURN NULL;
    END IF;
    v_later := array(
        SELECT job.id FROM timeball.job
        WHERE job.id = ANY (p_jobs) AND job.run_at > timeball.now()
          AND (  -- who has spawned has run already, revived before its instant
              SELECT held.reason FROM timeball.held WHERE held.job_id = job.id
          ) IS DISTINCT FROM 'spawned'
        ORDER BY job.id);
    UPDATE timeball.held AS child SET state = 'scheduled', reason = NULL,
        run_at = (SELECT job.run_at FROM timeball.job WHERE job.id = child.job_id),
        all_left = NULL, one_left = NULL, one_met = NULL, lost = NULL
    WHERE child.job_id = ANY (v_later);
    -- Not <> ALL, which would compare each with each.
    v_now := array(SELECT unnest(p_jobs) EXCEPT SELECT unnest(v_later));
    PERFORM timeball.line_up(v_now);
    SELECT array_agg(DISTINCT held.key) INTO v_keys FROM timeball.held
    WHERE held.job_id = ANY (p_jobs) AND held.reason = 'key';
    PERFORM pg_notify('timeball_wake', rung.queue)
    FROM (
        SELECT DISTINCT lane.queue FROM timeball.job
        LEFT JOIN timeball.moved ON moved.job_id = job.id
        JOIN timeball.lane ON lane.id = coalesce(moved.lane, job.lane)
        WHERE job.id = ANY (v_now) AND job.key IS NULL
    ) AS rung;
    RETURN v_keys;
END
$function$;
