-- Let jobs of some keys into their lanes as far as the keys have free slots, up to p_limit in
-- all; return how many. Of one key first those of the highest class, then those that have
-- waited longest; only into queues that a worker serves and nobody has paused, so that nobody holds a slot in vain.
--
-- Keys are gone through in their order, and each slot is an insert: who holds slots of one key
-- waits for a later one only. Jobs that somebody else is at are left to him.
CREATE OR REPLACE FUNCTION timeball.admit_keys(p_keys text[], p_limit integer)
RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $function$
DECLARE
    v_lanes integer[] := timeball.open_lanes();
    v_key text;
    v_at_once integer;
    v_free integer;
    v_jobs bigint[];
    v_all bigint[] := '{}';
    v_rated boolean := EXISTS (SELECT FROM timeball.limiter WHERE limiter.starts IS NOT NULL);
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'admitting needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    FOR v_key IN SELECT DISTINCT u.key FROM unnest(p_keys) AS u (key) ORDER BY u.key LOOP
        v_at_once := timeball.limit_of(v_key);
        v_free := least(p_limit - cardinality(v_all), v_at_once - (
            SELECT count(*) FROM timeball.slot WHERE slot.scope = 'key' AND slot.name = v_key));
        CONTINUE WHEN v_free <= 0;
        v_free := CASE WHEN v_rated THEN timeball.expected('key:' || v_key, v_free) ELSE v_free END;
        CONTINUE WHEN v_free <= 0;
        v_jobs := array(
            SELECT first.job_id
            FROM timeball.lane
            CROSS JOIN LATERAL (
                SELECT held.job_id, held.at FROM timeball.held
                WHERE held.state = 'pending' AND held.reason = 'key'
                  AND held.key = v_key AND held.lane = lane.id
                ORDER BY held.at, held.job_id
                LIMIT v_free
                FOR UPDATE SKIP LOCKED
            ) AS first
            WHERE lane.id = ANY (v_lanes)
            ORDER BY lane.priority DESC, first.at, first.job_id
            LIMIT v_free);
        CONTINUE WHEN v_jobs = '{}';
        v_jobs := timeball.take_slots('key', v_key, v_at_once, v_jobs);
        WITH gone AS (
            DELETE FROM timeball.held WHERE held.job_id = ANY (v_jobs) RETURNING held.*
        )
        INSERT INTO timeball.entry
            (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, at_once,
                lined_at)
        SELECT lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, v_at_once,
            CASE WHEN v_rated THEN at END
        FROM gone ORDER BY job_id;
        v_all := v_all || v_jobs;
    END LOOP;

    PERFORM pg_notify('timeball_wake', rung.queue)
    FROM (
        SELECT DISTINCT lane.queue FROM timeball.job
        LEFT JOIN timeball.moved ON moved.job_id = job.id
        JOIN timeball.lane ON lane.id = coalesce(moved.lane, job.lane)
        WHERE job.id = ANY (v_all)
    ) AS rung;
    RETURN cardinality(v_all);
END
$function$;
