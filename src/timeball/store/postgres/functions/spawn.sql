-- event: await, cancel (running -> waiting, cancelled)
-- Record that a turn has ended `awaited` and add the jobs of p_jobs, which its job waits for. Returns
-- accepted, already or stale; in the latter two, and where it raises, nothing is added. Null where the
-- graph lock was not to be had: nothing has happened, ask again.
--
-- They are added first: that may wait for somebody's unique key, and no lock that others need is
-- held meanwhile. Where each is new and waits for none but the others, nobody can know them before
-- the commit: whoever ends one finds the edge. Where one was there before, or waits for such a job,
-- the graph lock is taken alone, for a cycle is looked for; and whether those have ended is looked
-- at by `link`.
CREATE OR REPLACE FUNCTION timeball.spawn(
    p_worker bigint, p_lane integer, p_seq bigint, p_job bigint, p_turn integer,
    p_began double precision, p_ran_s double precision, p_result text, p_jobs jsonb
) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_spawned bigint[];
    v_known bigint[];
    v_events text[] := '{awaited}';
    v_verdicts text[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'spawning needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    BEGIN
        v_spawned := array(SELECT added.id FROM timeball.submit(p_jobs) AS added ORDER BY added.id);
        v_known := array(
            SELECT job.id FROM timeball.job
            WHERE job.id = ANY (v_spawned)
              AND (job.xid <> pg_current_xact_id() OR age(job.xmin) > 0)
            ORDER BY job.id);
        IF v_known <> '{}' OR EXISTS (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.child = ANY (v_spawned) AND edge.linked_at IS NULL
        ) THEN
            IF NOT timeball.lock_graph() THEN
                RAISE EXCEPTION 'others are just ending jobs' USING ERRCODE = 'TB009';
            END IF;
            PERFORM timeball.check_cycle(
                p_job, 'spawns what waits for', v_spawned, v_known, false);
        ELSE
            PERFORM timeball.share_graph();
        END IF;
        PERFORM timeball.await_spawned(
            p_worker, p_lane, p_seq, p_job, p_turn, p_began, p_ran_s, p_result, v_spawned, v_known);
        IF EXISTS (SELECT FROM timeball.slot) THEN
            PERFORM timeball.admit_keys(timeball.free_slots(ARRAY[p_job]), 1000);
        END IF;
        RETURN 'accepted';
    EXCEPTION
        WHEN SQLSTATE 'TB009' THEN
            RETURN NULL;
        WHEN SQLSTATE 'TB007' THEN NULL;  -- the turn has ended, or was never granted
        WHEN SQLSTATE 'TB008' THEN
            v_verdicts := timeball.settle(p_worker, ARRAY[p_lane], ARRAY[p_seq], ARRAY[p_job],
                ARRAY[p_turn], '{cancelled}', '{requested}', '{0}', ARRAY[p_began],
                ARRAY[p_ran_s], '{}', '{}', '{}');
            RETURN v_verdicts[1];
    END;
    v_verdicts := timeball.verdicts(p_worker, ARRAY[p_lane], ARRAY[p_seq], ARRAY[p_job],
        ARRAY[p_turn], v_events, '{}', '{}', '{}');
    RETURN v_verdicts[1];
END
$function$;
