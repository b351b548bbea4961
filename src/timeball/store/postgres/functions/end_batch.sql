-- event: join, skip
--   (waiting -> succeeded, failed, cancelled, skipped)
-- End a batch of which nothing is left, and what this rules out; return who may start now, and all
-- that have ended with how, the batch first; null where it has not.
--
-- Rows of what comes after a batch have their place before the batch's own in the order of locks,
-- so that they are not waited for: where one is in other hands, `link` decides, in a moment. So it
-- does where one of them is in an earlier batch, whose place is before this one's.
CREATE OR REPLACE FUNCTION timeball.end_batch(
    p_batch bigint, OUT o_free bigint[], OUT o_ended bigint[], OUT o_events text[]
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_turn integer;
    v_end text;
    v_touched bigint[];
    v_told record;
BEGIN
    SELECT held.turn INTO v_turn FROM timeball.held
    WHERE held.job_id = p_batch AND held.state = 'waiting' ORDER BY held.job_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_end := timeball.batch_end(p_batch);
    IF v_end IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM timeball.held WHERE held.job_id = p_batch;
    INSERT INTO timeball.ended (job_id, turn, event, reason)
    VALUES (p_batch, v_turn, v_end, 'members');
    o_free := '{}';
    o_ended := ARRAY[p_batch];
    o_events := ARRAY[v_end];
    v_touched := timeball.descendants(o_ended, o_events);
    IF NOT EXISTS (
        SELECT FROM unnest(v_touched) AS u (job_id)
        CROSS JOIN LATERAL (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.parent = u.job_id AND edge.decided_at IS NULL AND edge.joins
              AND edge.child < p_batch
            LIMIT 1
        ) AS earlier
    ) AND timeball.lock_free(v_touched) THEN
        v_told := timeball.tell_waves(o_ended, o_events);
        o_free := v_told.o_free;
        o_ended := v_told.o_ended;
        o_events := v_told.o_events;
    ELSE
        UPDATE timeball.dependency AS edge SET linked_at = NULL
        WHERE edge.parent = p_batch AND edge.decided_at IS NULL AND NOT edge.joins;
    END IF;
END
$function$;
