-- event: join, release, skip
--   (waiting -> succeeded, failed, cancelled, skipped, pending, scheduled)
-- Let an open batch end with the last of its jobs, or at once where none is left; whether it was
-- open. With p_stop nothing can be added to it any more.
CREATE OR REPLACE FUNCTION timeball.close_batch(p_batch uuid, p_stop boolean)
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_batch bigint;
    v_held record;
    v_told record;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'closing a batch needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    PERFORM timeball.share_graph();
    v_batch := timeball.batch_id(p_batch);
    SELECT held.turn, held.reason INTO v_held FROM timeball.held
    WHERE held.job_id = v_batch AND held.state = 'waiting' ORDER BY held.job_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO timeball.event (kind, job_id, turn)
    SELECT 'cancel_requested', v_batch, v_held.turn WHERE p_stop
    ON CONFLICT DO NOTHING;
    IF v_held.reason <> 'open' THEN
        RETURN false;
    END IF;
    UPDATE timeball.held SET reason = 'members' FROM (
        SELECT held.job_id FROM timeball.held
        WHERE held.job_id = v_batch ORDER BY held.job_id FOR NO KEY UPDATE
    ) AS mine WHERE held.job_id = mine.job_id;
    v_told := timeball.end_batch(v_batch);
    IF v_told.o_ended IS NOT NULL THEN
        PERFORM timeball.admit_keys(timeball.set_free(
            v_told.o_free || timeball.end_batches(v_told.o_ended, v_told.o_events)), 1000);
    END IF;
    RETURN true;
END
$function$;
