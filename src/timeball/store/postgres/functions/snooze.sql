-- event: snooze (pending -> scheduled)
-- Let a job that has not begun start at an instant at the earliest, and never sooner than before.
-- Returns snoozed, waiting, running, finished or not_found.
--
-- A held job under its own row's lock. One in its lane under the lane's lock, where its turn was not
-- granted: that turn ends, the next one is scheduled, and the slot of its key goes to the next job.
-- The instant is put on record, with the turn that may not start before it.
CREATE OR REPLACE FUNCTION timeball.snooze(p_uuid uuid, p_until timestamptz)
RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    -- Whatever date style the reader has, it reads this.
    v_until text := to_char(p_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    v_job bigint;
    v_key text;
    v_held record;
    v_entry record;
    v_event text;
    v_keys text[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'a snooze runs alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    IF NOT timeball.at_home() THEN
        RAISE EXCEPTION 'the ledger was last used on another server'
            USING ERRCODE = 'TB005', HINT = 'Call timeball.move_in() first.';
    END IF;
    LOOP
        SELECT job.id, job.key INTO v_job, v_key FROM timeball.job WHERE job.uuid = p_uuid;
        IF NOT FOUND THEN
            RETURN 'not_found';
        END IF;
        SELECT held.state, held.reason, held.turn INTO v_held FROM timeball.held
        WHERE held.job_id = v_job ORDER BY held.job_id FOR NO KEY UPDATE;
        IF v_held.state = 'waiting' OR v_held.reason = 'overlap' THEN
            RETURN 'waiting';
        ELSIF v_held.state IN ('scheduled', 'pending') THEN
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            SELECT v_job, v_held.turn, 'snoozed', 'requested' WHERE v_held.state = 'pending';
            UPDATE timeball.held SET turn = held.turn + (held.state = 'pending')::integer,
                state = 'scheduled', run_at = greatest(held.run_at, p_until), line = NULL,
                reason = CASE WHEN held.state = 'scheduled' THEN held.reason END
            FROM (
                SELECT held.job_id FROM timeball.held
                WHERE held.job_id = v_job ORDER BY held.job_id FOR NO KEY UPDATE
            ) AS mine WHERE held.job_id = mine.job_id;
            INSERT INTO timeball.event (kind, job_id, turn, detail)
            VALUES ('snoozed', v_job, v_held.turn + (v_held.state = 'pending')::integer, v_until);
            RETURN 'snoozed';
        END IF;
        SELECT * INTO v_entry FROM timeball.latest_entry(v_job);
        IF v_entry.turn IS NULL THEN
            SELECT ended.event INTO v_event FROM timeball.ended
            WHERE ended.job_id = v_job ORDER BY ended.turn DESC LIMIT 1;
            IF v_event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired') THEN
                RETURN 'finished';
            END IF;
            CONTINUE;  -- between two turns a moment ago: look again
        END IF;
        CONTINUE WHEN NOT timeball.enter_lane(v_job, v_entry.turn, v_entry.lane);
        IF timeball.passed(v_entry.lane, v_entry.xid, v_job) THEN
            RETURN 'running';
        END IF;

        INSERT INTO timeball.ended (job_id, turn, event, reason)
        VALUES (v_job, v_entry.turn, 'snoozed', 'requested');
        INSERT INTO timeball.held
            (job_id, turn, state, lane, run_at, kind, key, attempts, failures, crashes, delay_s,
                expires_at)
        SELECT v_job, v_entry.turn + 1, 'scheduled', v_entry.lane, p_until, job.kind, v_key,
            coalesce(entry.attempts, 0), coalesce(entry.failures, 0), coalesce(entry.crashes, 0),
            coalesce(entry.delay_s, 0), entry.expires_at
        FROM timeball.entry JOIN timeball.job ON job.id = entry.job_id
        WHERE entry.lane = v_entry.lane AND entry.xid = v_entry.xid AND entry.job_id = v_job;
        INSERT INTO timeball.event (kind, job_id, turn, detail)
        VALUES ('snoozed', v_job, v_entry.turn + 1, v_until);
        -- The decision takes a place in the lane's order, like a claim.
        INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
        SELECT lane, seq + 1, prev, cur, pos_xid, pos_id, '{}', '{}'
        FROM timeball.lease WHERE lane = v_entry.lane ORDER BY seq DESC LIMIT 1;
        v_keys := timeball.free_slots(ARRAY[v_job]);
        PERFORM timeball.admit_keys(v_keys, 1000) WHERE v_keys IS NOT NULL;
        RETURN 'snoozed';
    END LOOP;
END
$function$;
