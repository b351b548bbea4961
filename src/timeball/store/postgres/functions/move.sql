-- event: move (pending -> pending)
-- Let a job that has not begun wait in another queue or priority class; null: as before. Returns
-- moved, running, finished, not_found, or no_lane where there is no such lane yet; with it the
-- queue and the class.
--
-- A held job changes its lane under its own row's lock; where it waits for a rate it lines up at
-- once, since another rate may be what it waits for there, or none. One in its lane: under the lane's lock, where
-- its turn was not granted, that turn ends and the next one enters the other lane, like any new
-- entry; of that lane no lock is needed. Where it is there already nothing happens.
CREATE OR REPLACE FUNCTION timeball.move(
    p_uuid uuid, p_queue text, p_priority integer,
    OUT o_answer text, OUT o_queue text, OUT o_priority integer
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_job bigint;
    v_entry record;
    v_held boolean;
    v_rated boolean;
    v_from integer;
    v_to integer;
    v_event text;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'a move runs alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    IF NOT timeball.at_home() THEN
        RAISE EXCEPTION 'the ledger was last used on another server'
            USING ERRCODE = 'TB005', HINT = 'Call timeball.move_in() first.';
    END IF;
    LOOP
        SELECT job.id INTO v_job FROM timeball.job WHERE job.uuid = p_uuid;
        IF NOT FOUND THEN
            o_answer := 'not_found';
            RETURN;
        END IF;
        SELECT held.lane INTO v_from FROM timeball.held
        WHERE held.job_id = v_job ORDER BY held.job_id FOR NO KEY UPDATE;
        v_held := FOUND;
        IF NOT v_held THEN
            SELECT * INTO v_entry FROM timeball.latest_entry(v_job);
            IF v_entry.turn IS NULL THEN
                SELECT ended.event INTO v_event FROM timeball.ended
                WHERE ended.job_id = v_job ORDER BY ended.turn DESC LIMIT 1;
                IF v_event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired') THEN
                    o_answer := 'finished';
                    RETURN;
                END IF;
                CONTINUE;  -- between two turns a moment ago: look again
            END IF;
            v_from := v_entry.lane;
            CONTINUE WHEN NOT timeball.enter_lane(v_job, v_entry.turn, v_from);
            IF timeball.passed(v_from, v_entry.xid, v_job) THEN
                o_answer := 'running';
                RETURN;
            END IF;
        END IF;

        SELECT coalesce(p_queue, here.queue), coalesce(p_priority, here.priority), there.id
        INTO o_queue, o_priority, v_to
        FROM timeball.lane AS here
        LEFT JOIN timeball.lane AS there ON there.queue = coalesce(p_queue, here.queue)
            AND there.priority = coalesce(p_priority, here.priority)
        WHERE here.id = v_from;
        o_answer := CASE WHEN v_to IS NULL THEN 'no_lane' ELSE 'moved' END;
        IF v_to IS NULL OR v_to = v_from THEN
            RETURN;
        END IF;
        IF v_held THEN
            UPDATE timeball.held SET lane = v_to FROM (
                SELECT held.job_id FROM timeball.held
                WHERE held.job_id = v_job ORDER BY held.job_id FOR NO KEY UPDATE
            ) AS mine WHERE held.job_id = mine.job_id
            RETURNING held.line IS NOT NULL INTO v_rated;
            IF v_rated THEN
                PERFORM timeball.line_up(ARRAY[v_job]);
            END IF;
        ELSE
            PERFORM timeball.change_lane(v_job, v_entry.turn, v_from, v_entry.xid, v_to);
        END IF;
        INSERT INTO timeball.moved (job_id, lane) VALUES (v_job, v_to)
        ON CONFLICT (job_id) DO UPDATE SET lane = excluded.lane;
        RETURN;
    END LOOP;
END
$function$;
