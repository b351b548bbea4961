-- event: submit (-> scheduled, waiting, pending)
-- Add jobs to a batch that has not ended, and return their ids; see `submit` for the jobs. They may
-- come after each other and after members: so they close no cycle, since those come before the end
-- of the batch already. Asking again with the same jobs adds nothing.
--
-- The batch's row is held so that it cannot end meanwhile: whoever might end it waits for this
-- transaction, which is why this is none of a caller's own. The jobs are added first: that may wait
-- for somebody's unique key, and no lock that others need is held meanwhile.
CREATE OR REPLACE FUNCTION timeball.add_members(p_batch uuid, p_jobs jsonb)
RETURNS TABLE (id bigint, uuid uuid) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    v_batch bigint;
    v_turn integer;
    v_wrong text;
    v_given uuid[];
    v_ids bigint[];
    v_uuids uuid[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'jobs are added to a batch alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    v_batch := timeball.batch_id(p_batch);
    SELECT array_agg(added.id ORDER BY added.n), array_agg(added.uuid ORDER BY added.n)
    INTO v_ids, v_uuids
    FROM timeball.submit(p_jobs) WITH ORDINALITY AS added (id, uuid, n);
    PERFORM timeball.share_graph();
    SELECT held.turn INTO v_turn FROM timeball.held
    WHERE held.job_id = v_batch AND held.state = 'waiting' ORDER BY held.job_id FOR KEY SHARE;
    IF NOT FOUND OR EXISTS (
        SELECT FROM timeball.event WHERE event.job_id = v_batch AND event.turn = v_turn
          AND event.kind = 'cancel_requested')
    THEN
        RAISE EXCEPTION 'batch % has ended, or was cancelled: make another one', p_batch
            USING ERRCODE = 'TB002';
    END IF;
    v_given := array(
        SELECT (spec.value ->> 'uuid')::uuid FROM jsonb_array_elements(p_jobs) AS spec (value));
    SELECT min(want.job::text) INTO v_wrong
    FROM jsonb_array_elements(p_jobs) AS spec (value)
    CROSS JOIN LATERAL jsonb_to_recordset(nullif(spec.value -> 'after', 'null')) AS want (job uuid)
    WHERE want.job <> ALL (v_given) AND NOT EXISTS (
            SELECT FROM timeball.job JOIN timeball.dependency AS edge ON edge.parent = job.id
            WHERE job.uuid = want.job AND edge.child = v_batch AND edge.rule = 'member');
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'after names job %, which is not in the batch: name its own jobs', v_wrong
            USING ERRCODE = 'TB002';
    END IF;

    SELECT min(job.uuid::text) INTO v_wrong FROM timeball.job
    WHERE job.id = ANY (v_ids)
      AND (job.kind = 'timeball.batch'
        OR (job.xid <> pg_current_xact_id() OR age(job.xmin) > 0) AND NOT EXISTS (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.child = v_batch AND edge.parent = job.id AND edge.rule = 'member'));
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'job % was there before, or is a batch: add new jobs to a batch', v_wrong
            USING ERRCODE = 'TB002';
    END IF;
    INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, joins, linked_at)
    SELECT v_batch, u.id, u.uuid, 'member', true, timeball.clock()
    FROM unnest(v_ids, v_uuids) AS u (id, uuid)
    ORDER BY u.id
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT u.id, u.uuid FROM unnest(v_ids, v_uuids) AS u (id, uuid);
END
$function$;
