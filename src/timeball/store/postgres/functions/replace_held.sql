-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Cancel a job in favour of a newer one of its unique key, and return whether that was done:
-- only while it is held. In its lane it may be granted at any moment, and to keep it from that
-- takes the lane's lock, which no caller's transaction may hold. Nor one that waits for parents:
-- who ends one of those would wait for the caller. What it means for its own children is left to
-- `link`, which waits for nobody: it leaves parents alone whose rows are locked.
CREATE OR REPLACE FUNCTION timeball.replace_held(p_job uuid) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_gone record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'on_clash="replace" needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    DELETE FROM timeball.held USING timeball.job
    WHERE job.uuid = p_job AND held.job_id = job.id AND held.state <> 'waiting'
    RETURNING held.job_id, held.turn INTO v_gone;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO timeball.ended (job_id, turn, event, reason)
    VALUES (v_gone.job_id, v_gone.turn, 'cancelled', 'replaced');
    PERFORM timeball.unlink(ARRAY[v_gone.job_id]);
    RETURN true;
END
$function$;
