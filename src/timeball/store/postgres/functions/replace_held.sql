-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Cancel a job in favour of a newer one of its unique key, and return whether that was done:
-- only while it is held. In its lane it may be granted at any moment, and to keep it from that
-- takes the lane's lock, which no caller's transaction may hold.
CREATE OR REPLACE FUNCTION timeball.replace_held(p_job uuid) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_gone record;
BEGIN
    DELETE FROM timeball.held USING timeball.job
    WHERE job.uuid = p_job AND held.job_id = job.id
    RETURNING held.job_id, held.turn INTO v_gone;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO timeball.ended (job_id, turn, event, reason)
    VALUES (v_gone.job_id, v_gone.turn, 'cancelled', 'replaced');
    RETURN true;
END
$function$;
