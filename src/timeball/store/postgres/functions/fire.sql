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
BEGIN
    UPDATE timeball.schedule SET cursor_at = p_cursor, next_at = p_next
    WHERE schedule.id = p_schedule AND schedule.revision = p_revision
      AND schedule.cursor_at = p_seen AND schedule.state = 'active';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    PERFORM timeball.submit(p_jobs);

    INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason, job_id)
    SELECT p_schedule, u.nominal_at, u.decision, u.reason, job.id
    FROM unnest(p_nominal_at, p_decisions, p_reasons, p_uuids)
        AS u (nominal_at, decision, reason, uuid)
    LEFT JOIN timeball.job ON job.uuid = u.uuid
    ORDER BY u.nominal_at
    ON CONFLICT DO NOTHING;

    RETURN (SELECT coalesce(array_agg(job.id ORDER BY u.n), '{}')
        FROM unnest(p_uuids) WITH ORDINALITY AS u (uuid, n) JOIN timeball.job ON job.uuid = u.uuid);
END
$function$;
