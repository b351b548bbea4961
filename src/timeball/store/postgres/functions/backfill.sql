-- Fire past occurrences of a schedule, whatever was decided about them before, but for those
-- that have fired. Returns the job id of each, null for those; null where the schedule was
-- edited since it was read.
CREATE OR REPLACE FUNCTION timeball.backfill(
    p_schedule bigint, p_revision bigint, p_nominal_at timestamptz[], p_uuids uuid[], p_jobs jsonb
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_fresh uuid[];
    v_jobs bigint[];
BEGIN
    PERFORM timeball.durable();
    PERFORM 1 FROM timeball.schedule
    WHERE schedule.id = p_schedule AND schedule.revision = p_revision
      AND schedule.state <> 'retired' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_fresh := array(
        SELECT u.uuid FROM unnest(p_nominal_at, p_uuids) AS u (nominal_at, uuid)
        WHERE (  -- looked up one by one: a join might read all that was ever decided
            SELECT occurrence.decision FROM timeball.occurrence
            WHERE occurrence.schedule_id = p_schedule AND occurrence.nominal_at = u.nominal_at
        ) IS DISTINCT FROM 'fired');
    SELECT array_agg(added.id ORDER BY u.n) INTO v_jobs
    FROM timeball.submit((
        SELECT coalesce(jsonb_agg(job.value ORDER BY job.n), '[]')
        FROM jsonb_array_elements(p_jobs) WITH ORDINALITY AS job (value, n)
        WHERE (job.value ->> 'uuid')::uuid = ANY (v_fresh)
    ), p_bounded => false) AS added
    RIGHT JOIN unnest(p_uuids) WITH ORDINALITY AS u (uuid, n) ON u.uuid = added.uuid;

    INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason, job_id)
    SELECT p_schedule, u.nominal_at, 'fired', 'backfill', u.job_id
    FROM unnest(p_nominal_at, v_jobs) AS u (nominal_at, job_id)
    WHERE u.job_id IS NOT NULL
    ORDER BY u.nominal_at
    ON CONFLICT (schedule_id, nominal_at) DO UPDATE
    SET decision = 'fired', reason = 'backfill', job_id = excluded.job_id, at = timeball.clock();
    IF v_fresh <> '{}' THEN
        PERFORM timeball.note_runs(
            p_schedule, array_remove(v_jobs, NULL), v_fresh[cardinality(v_fresh)]);
    END IF;
    RETURN v_jobs;
END
$function$;
