-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Keep a job from starting, or record the request where its turn is granted already.
-- Returns cancelled, requested, finished or not_found.
CREATE OR REPLACE FUNCTION timeball.cancel(p_uuid uuid)
RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_job bigint;
    v_key text;
    v_batch boolean;
    v_keys text[];
    v_answer text;
BEGIN
    PERFORM timeball.durable();
    -- It decides under the lane's lock, which a longer transaction would go on holding.
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'a cancel runs alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    SELECT job.id, job.key, job.kind = 'timeball.batch' INTO v_job, v_key, v_batch
    FROM timeball.job WHERE job.uuid = p_uuid;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    IF v_batch THEN
        RAISE EXCEPTION 'job % is a batch: write client.get_batch(uuid).cancel(), or timeball batch cancel', p_uuid
            USING ERRCODE = 'TB002';
    END IF;
    v_answer := timeball.cancel_job(v_job);
    IF v_answer = 'cancelled' THEN
        v_keys := timeball.tell_children(ARRAY[v_job]) || array_remove(ARRAY[v_key], NULL);
        PERFORM timeball.admit_keys(v_keys, 1000) WHERE v_keys <> '{}';
    END IF;
    RETURN v_answer;
END
$function$;
