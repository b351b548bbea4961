-- event: call (waiting -> succeeded)
-- End a callback with what was said to it and return accepted; or, where that cannot be, how it has
-- ended before, with its result; expired also where its deadline has passed and nobody has looked;
-- not_found. Of a call, a cancel and a deadline that meet, the one that gets its row ends it.
--
-- Locked first, together with those that wait for it, in the order of ids, as in `cancel_job`: who
-- has spawned a callback is older than it.
CREATE OR REPLACE FUNCTION timeball.call_back(
    p_uuid uuid, p_result jsonb, OUT o_answer text, OUT o_result text
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_job bigint;
    v_turn integer;
    v_touched bigint[];
    v_keys text[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a call needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    SELECT job.id INTO v_job FROM timeball.job
    WHERE job.uuid = p_uuid AND job.kind = 'timeball.callback';
    PERFORM timeball.share_graph();
    SELECT timeball.descendants(ARRAY[v_job], '{succeeded}') INTO v_touched FROM timeball.held
    WHERE held.job_id = v_job AND held.state = 'waiting' AND held.reason = 'call'
      AND held.expires_at > timeball.now();
    PERFORM 1 FROM timeball.held
    WHERE held.job_id = ANY (v_touched) AND held.state = 'waiting'
    ORDER BY held.job_id
    FOR UPDATE;
    DELETE FROM timeball.held
    WHERE held.job_id = v_job AND held.state = 'waiting' AND held.reason = 'call'
      AND held.expires_at > timeball.now()
    RETURNING held.turn INTO v_turn;
    IF FOUND THEN
        INSERT INTO timeball.ended (job_id, turn, event, reason, result)
        VALUES (v_job, v_turn, 'succeeded', 'call', p_result);
        v_keys := timeball.tell_children(ARRAY[v_job]);
        PERFORM timeball.admit_keys(v_keys, 1000) WHERE v_keys <> '{}';
        o_answer := 'accepted';
        RETURN;
    END IF;

    -- One statement: what it finds neither held nor ended is not there.
    SELECT coalesce(ended.event, CASE WHEN held.job_id IS NULL THEN 'not_found' ELSE 'expired' END),
        ended.result::text
    INTO o_answer, o_result
    FROM (SELECT v_job AS id) AS job
    LEFT JOIN timeball.held ON held.job_id = job.id
    LEFT JOIN LATERAL (
        SELECT last.event, last.result FROM timeball.ended AS last
        WHERE last.job_id = job.id ORDER BY last.turn DESC LIMIT 1
    ) AS ended ON true;
END
$function$;
