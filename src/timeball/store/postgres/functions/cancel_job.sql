-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Keep one known job from starting, or record the request where its turn is granted already.
-- Returns cancelled, requested, finished or not_found.
--
-- Each round looks with fresh statements and acts under the lock that makes what it saw
-- hold; where the job has moved on meanwhile, another round follows. One that waits for parents is
-- locked together with those that it may rule out, in the order of ids like those whom
-- `tell_children` locks: an edge may lead from a later job to an earlier one. Where it has gone
-- meanwhile, those locks are given back, for the lane's comes before them.
CREATE OR REPLACE FUNCTION timeball.cancel_job(p_job bigint)
RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_turn integer;
    v_entry record;
    v_event text;
    v_touched bigint[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a job is cancelled in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    PERFORM timeball.share_graph();
    LOOP
        BEGIN
            IF EXISTS (
                SELECT FROM timeball.held WHERE held.job_id = p_job AND held.state = 'waiting')
            THEN
                v_touched := timeball.descendants(ARRAY[p_job], '{cancelled}');
                PERFORM 1 FROM timeball.held
                WHERE held.job_id = ANY (v_touched) AND held.state = 'waiting'
                ORDER BY held.job_id
                FOR UPDATE;
                IF NOT EXISTS (SELECT FROM timeball.held WHERE held.job_id = p_job) THEN
                    RAISE EXCEPTION USING ERRCODE = 'TB007';
                END IF;
            END IF;
        EXCEPTION WHEN SQLSTATE 'TB007' THEN NULL;
        END;
        DELETE FROM timeball.held WHERE held.job_id = p_job RETURNING held.turn INTO v_turn;
        IF FOUND THEN
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            VALUES (p_job, v_turn, 'cancelled', 'requested');
            RETURN 'cancelled';
        END IF;

        SELECT * INTO v_entry FROM timeball.latest_entry(p_job);
        IF v_entry.turn IS NULL THEN
            SELECT ended.event INTO v_event FROM timeball.ended
            WHERE ended.job_id = p_job ORDER BY ended.turn DESC LIMIT 1;
            IF v_event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired') THEN
                RETURN 'finished';
            END IF;
            IF NOT EXISTS (SELECT FROM timeball.job WHERE job.id = p_job) THEN
                RETURN 'not_found';  -- deleted a moment ago
            END IF;
            CONTINUE;  -- between two turns a moment ago: look again
        END IF;

        CONTINUE WHEN NOT timeball.enter_lane(p_job, v_entry.turn, v_entry.lane);
        IF NOT timeball.passed(v_entry.lane, v_entry.xid, p_job) THEN
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            VALUES (p_job, v_entry.turn, 'cancelled', 'requested');
            PERFORM timeball.free_slots(ARRAY[p_job]);
            -- The decision takes a place in the lane's order, like a claim.
            INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
            SELECT lane, seq + 1, prev, cur, pos_xid, pos_id, '{}', '{}'
            FROM timeball.lease WHERE lane = v_entry.lane ORDER BY seq DESC LIMIT 1;
            RETURN 'cancelled';
        END IF;

        PERFORM 1 FROM timeball.job WHERE job.id = p_job FOR NO KEY UPDATE;
        IF FOUND AND NOT EXISTS (
            SELECT FROM timeball.ended WHERE ended.job_id = p_job AND ended.turn = v_entry.turn
        ) THEN
            INSERT INTO timeball.event (kind, job_id, turn)
            VALUES ('cancel_requested', p_job, v_entry.turn)
            ON CONFLICT DO NOTHING;
            RETURN 'requested';
        END IF;
    END LOOP;
END
$function$;
