-- Record what was decided about occurrences of some schedules, add the jobs of those fired
-- and move the cursors. Returns the job ids of each firing (by its n); no row where the
-- schedule has changed since it was read, or somebody is at it: then none of its decisions
-- counts. A schedule occurs once in a call.
--
-- Compare-and-set on revision and cursor: of two nodes that decide the same occurrence one
-- finds the row locked or changed. Behind it stand the key of `occurrence` and the uuids.
-- What still runs is known only here: `overlap_runs` and `max_runs` are applied as in
-- core/overlap_runs.py. Where a run is replaced, its lane stays locked until the commit:
-- such a schedule is fired alone.
--
-- p_firings: objects of n, id, revision, seen, moved, and the columns that change; p_decisions: of n,
-- nominal_at, fired, reason, uuid; p_jobs: as `submit` takes them, for what is to be fired.
CREATE OR REPLACE FUNCTION timeball.fire(p_firings jsonb, p_decisions jsonb, p_jobs jsonb)
RETURNS TABLE (n integer, jobs bigint[]) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_mergejoin = off
AS $function$
#variable_conflict use_column
DECLARE
    v_kept integer[];
    v_of integer[];
    v_schedules bigint[];
    v_nominal_at timestamptz[];
    v_uuids uuid[];
    v_fires boolean[];
    v_reasons text[];
    v_queued uuid[];
    v_replaced bigint[];
    v_jobs bigint[];
BEGIN
    PERFORM timeball.durable();
    v_kept := array(
        SELECT asked.n
        FROM jsonb_to_recordset(p_firings)
            AS asked (n integer, id bigint, revision bigint, seen timestamptz)
        JOIN timeball.schedule ON schedule.id = asked.id
        WHERE schedule.revision = asked.revision AND schedule.cursor_at = asked.seen
          AND schedule.state IN ('active', 'paused')
        ORDER BY schedule.id
        FOR NO KEY UPDATE OF schedule SKIP LOCKED);

    -- An edit may have put the cursor back: what was decided once stays decided.
    WITH kept AS MATERIALIZED (
        SELECT asked.n, schedule.id, schedule.overlap_runs AS policy, schedule.runs,
            (schedule.terms ->> 'max_runs')::bigint - schedule.fired AS rest,
            CASE WHEN schedule.overlap_runs <> 'allow'
                THEN cardinality(timeball.open_runs(schedule.runs)) END AS ahead
        FROM jsonb_to_recordset(p_firings) AS asked (n integer, id bigint)
        JOIN timeball.schedule ON schedule.id = asked.id
        WHERE asked.n = ANY (v_kept)
    ),
    decided AS (
        SELECT kept.*, u.nominal_at, u.reason, u.uuid, u.fired AS wanted,
            row_number() OVER (of_one ORDER BY u.nominal_at) AS place,
            count(*) OVER of_one AS wants
        FROM kept
        JOIN jsonb_to_recordset(p_decisions)
            AS u (n integer, nominal_at timestamptz, fired boolean, reason text, uuid uuid)
            ON u.n = kept.n
        WHERE (  -- looked up one by one: a join might read all that was ever decided
            SELECT occurrence.decision FROM timeball.occurrence
            WHERE occurrence.schedule_id = kept.id AND occurrence.nominal_at = u.nominal_at
        ) IS NULL
        WINDOW of_one AS (PARTITION BY kept.n, u.fired)
    ),
    passed AS (
        SELECT decided.*, decided.wanted AND CASE decided.policy
                WHEN 'skip' THEN decided.place <= 1 - decided.ahead
                WHEN 'queue_one' THEN decided.place <= 2 - decided.ahead
                WHEN 'replace' THEN decided.place = decided.wants
                ELSE true
            END AS passes,
            CASE decided.policy WHEN 'replace' THEN 1 ELSE decided.place END AS rank
        FROM decided
    ),
    judged AS (
        SELECT passed.*,
            passed.passes AND (passed.rest IS NULL OR passed.rank <= passed.rest) AS fires
        FROM passed
    )
    SELECT array_agg(judged.n), array_agg(judged.id), array_agg(judged.nominal_at), array_agg(judged.uuid),
        array_agg(judged.fires),
        array_agg(CASE
            WHEN judged.fires OR NOT judged.wanted THEN judged.reason
            WHEN judged.passes THEN 'max_runs'
            ELSE 'overlap'
        END),
        coalesce(array_agg(judged.uuid) FILTER (
            WHERE judged.fires AND judged.policy = 'queue_one'
              AND judged.ahead + judged.place > 1), '{}'),
        array_agg(DISTINCT judged.id) FILTER (WHERE judged.fires AND judged.policy = 'replace')
    INTO v_of, v_schedules, v_nominal_at, v_uuids, v_fires, v_reasons, v_queued, v_replaced
    FROM judged;

    IF v_replaced IS NOT NULL THEN
        PERFORM timeball.replace_runs(v_replaced);
    END IF;
    SELECT array_agg(added.id ORDER BY u.n) INTO v_jobs
    FROM timeball.submit((
        SELECT coalesce(jsonb_agg(job.value ORDER BY job.n), '[]')
        FROM jsonb_array_elements(p_jobs) WITH ORDINALITY AS job (value, n)
        JOIN unnest(v_uuids, v_fires) AS u (uuid, fires)
            ON u.uuid = (job.value ->> 'uuid')::uuid AND u.fires
    ), v_queued, p_bounded => false) AS added
    RIGHT JOIN unnest(v_uuids, v_fires) WITH ORDINALITY AS u (uuid, fires, n)
        ON u.uuid = added.uuid AND u.fires;

    INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason, job_id)
    SELECT u.schedule, u.nominal_at, CASE WHEN u.fires THEN 'fired' ELSE 'skipped' END,
        u.reason, u.job_id
    FROM unnest(v_schedules, v_nominal_at, v_fires, v_reasons, v_jobs)
        AS u (schedule, nominal_at, fires, reason, job_id)
    ORDER BY 1, 2;

    RETURN QUERY
    UPDATE timeball.schedule SET cursor_at = moved.cursor_at,
        next_at = CASE WHEN moved.over THEN NULL ELSE moved.next_at END,
        due_at = CASE WHEN moved.over THEN NULL ELSE moved.due_at END,
        active_from = CASE WHEN moved.moved
            THEN greatest(schedule.cursor_at, moved.cursor_at) ELSE schedule.active_from END,
        zone_version = moved.zone_version, fingerprint = moved.fingerprint,
        offset_s = moved.offset_s,
        fired = schedule.fired + cardinality(moved.jobs),
        fired_at = coalesce(moved.fired_at, schedule.fired_at),
        last_job = coalesce(moved.last_job, schedule.last_job),
        runs = CASE WHEN schedule.overlap_runs = 'allow' AND NOT schedule.queued
            THEN coalesce(nullif(moved.jobs[cardinality(moved.jobs):], '{}'), schedule.runs)
            ELSE timeball.runs_after(
                schedule.overlap_runs, schedule.runs, schedule.queued, moved.jobs)
        END,
        queued = schedule.queued OR moved.queued
    FROM (
        SELECT asked.*, coalesce(made.jobs, '{}') AS jobs, made.fired_at,
            made.last_job, coalesce(made.queued, false) AS queued,
            coalesce(schedule.fired + coalesce(cardinality(made.jobs), 0)
                >= (schedule.terms ->> 'max_runs')::bigint, false) AS over
        FROM jsonb_to_recordset(p_firings) AS asked (n integer, id bigint,
            cursor_at timestamptz, next_at timestamptz, due_at timestamptz, zone_version text,
            fingerprint text, offset_s integer, moved boolean)
        JOIN timeball.schedule ON schedule.id = asked.id
        LEFT JOIN (
            SELECT u.n, array_agg(u.job_id ORDER BY u.nominal_at) AS jobs,
                max(u.nominal_at) AS fired_at, bool_or(u.uuid = ANY (v_queued)) AS queued,
                (array_agg(u.uuid ORDER BY u.nominal_at DESC))[1] AS last_job
            FROM unnest(v_of, v_nominal_at, v_uuids, v_jobs) AS u (n, nominal_at, uuid, job_id)
            WHERE u.job_id IS NOT NULL
            GROUP BY u.n
        ) AS made ON made.n = asked.n
        WHERE asked.n = ANY (v_kept)
        ORDER BY schedule.id
        FOR NO KEY UPDATE OF schedule
    ) AS moved
    WHERE schedule.id = moved.id
    RETURNING moved.n, moved.jobs;
END
$function$;
