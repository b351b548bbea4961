-- Record what was decided about occurrences, add the jobs of those fired and move the
-- schedule's cursor: all or nothing. Returns the job ids; null where the schedule has
-- changed since it was read, so that the decisions do not count.
--
-- Compare-and-set on revision and cursor: of two nodes that decide the same occurrence one
-- finds the row changed. Behind it stand the key of `occurrence` and the jobs' own uuids.
CREATE OR REPLACE FUNCTION timeball.fire(
    p_schedule bigint, p_revision bigint, p_seen timestamptz, p_cursor timestamptz,
    p_next timestamptz, p_nominal_at timestamptz[], p_decisions text[], p_reasons text[],
    p_uuids uuid[], p_jobs jsonb
) RETURNS bigint[] LANGUAGE plpgsql
AS $function$
DECLARE
    v_new timestamptz[];
    v_jobs bigint[];
BEGIN
    PERFORM timeball.durable();
    UPDATE timeball.schedule SET cursor_at = p_cursor, next_at = p_next
    WHERE schedule.id = p_schedule AND schedule.revision = p_revision
      AND schedule.cursor_at = p_seen AND schedule.state = 'active';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    -- An edit may have put the cursor back: what was decided once stays decided.
    v_new := array(
        SELECT u.nominal_at FROM unnest(p_nominal_at) AS u (nominal_at)
        WHERE NOT EXISTS (
            SELECT FROM timeball.occurrence
            WHERE occurrence.schedule_id = p_schedule AND occurrence.nominal_at = u.nominal_at));
    v_jobs := array(
        SELECT added.id FROM timeball.submit((
            SELECT coalesce(jsonb_agg(job.value ORDER BY u.nominal_at), '[]')
            FROM unnest(p_nominal_at, p_uuids) AS u (nominal_at, uuid)
            JOIN jsonb_array_elements(p_jobs) AS job (value)
                ON (job.value ->> 'uuid')::uuid = u.uuid
            WHERE u.nominal_at = ANY (v_new)
        )) AS added);

    INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason, job_id)
    SELECT p_schedule, u.nominal_at, u.decision, u.reason, job.id
    FROM unnest(p_nominal_at, p_decisions, p_reasons, p_uuids)
        AS u (nominal_at, decision, reason, uuid)
    LEFT JOIN timeball.job ON job.uuid = u.uuid
    WHERE u.nominal_at = ANY (v_new)
    ORDER BY u.nominal_at;
    RETURN v_jobs;
END
$function$;
