-- Delete ended jobs with their history and return, of each that is known, what became of it:
-- deleted or refused.
-- Locks the job rows in the order of their ids; what is decided is read by a later statement.
CREATE OR REPLACE FUNCTION timeball.delete_jobs(p_uuids uuid[])
RETURNS TABLE (uuid uuid, answer text) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
#variable_conflict use_column
DECLARE
    v_jobs bigint[];
    v_ended bigint[];
    v_uuids uuid[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'deleting needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    WITH known AS MATERIALIZED (
        SELECT job.id, job.uuid FROM timeball.job
        WHERE job.uuid = ANY (p_uuids) ORDER BY job.id FOR UPDATE
    )
    SELECT array_agg(known.id), array_agg(known.uuid) INTO v_jobs, v_uuids FROM known;
    v_ended := array(SELECT known.id FROM unnest(v_jobs) AS known (id)
        WHERE timeball.has_ended(known.id) AND NOT EXISTS (
            SELECT FROM timeball.dependency AS edge
            WHERE edge.parent = known.id AND edge.decided_at IS NULL)
        AND NOT timeball.is_in_batch(known.id));
    v_ended := timeball.deletable(v_ended);
    PERFORM timeball.erase(v_ended);
    RETURN QUERY
    SELECT known.uuid, CASE WHEN known.id = ANY (v_ended) THEN 'deleted' ELSE 'refused' END
    FROM unnest(v_jobs, v_uuids) AS known (id, uuid);
END
$function$;
