-- event: submit (-> waiting)
-- Have jobs that were just added wait for their parents. Those of this same transaction count at
-- once: nobody else can have seen them. The others exist; whether they have ended is looked at by
-- `link`, after the commit, so that nobody ever waits for this transaction.
--
-- p_given holds the jobs as they were given, p_jobs as they were added: one that gave way to the
-- holder of its unique key has that job's uuid there. Parents are read by one statement only: they
-- may be deleted at any moment, and a child without an edge would be nowhere. The number of a
-- transaction of another server (pg_restore) comes again; the age of a row tells whose it is.
CREATE OR REPLACE FUNCTION timeball.join_parents(p_children bigint[], p_given jsonb, p_jobs jsonb)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_children bigint[];
    v_parents bigint[];
    v_uuids uuid[];
    v_rules text[];
    v_own boolean[];
    v_joins boolean[];
    v_wrong text;
BEGIN
    WITH stands_for AS MATERIALIZED (
        SELECT (given.value ->> 'uuid')::uuid AS given, (added.value ->> 'uuid')::uuid AS added
        FROM jsonb_array_elements(p_given) WITH ORDINALITY AS given (value, n)
        JOIN jsonb_array_elements(p_jobs) WITH ORDINALITY AS added (value, n) USING (n)
        WHERE given.value -> 'uuid' <> added.value -> 'uuid'
    ),
    edge AS MATERIALIZED (
        SELECT (spec.value ->> 'uuid')::uuid AS child, coalesce(other.added, want.job) AS parent,
            coalesce(want.rule, 'all_success') AS rule
        FROM jsonb_array_elements(p_jobs) AS spec (value)
        CROSS JOIN LATERAL jsonb_to_recordset(nullif(spec.value -> 'after', 'null'))
            AS want (job uuid, rule text)
        LEFT JOIN stands_for AS other ON other.given = want.job
    ),
    found AS (
        SELECT child.id AS child, parent.id AS parent, edge.rule, edge.parent AS uuid,
            parent.xid = pg_current_xact_id() AND age(parent.xmin) <= 0 AS own,
            child.kind = 'timeball.batch' AS joins
        FROM edge
        JOIN timeball.job AS child ON child.uuid = edge.child
        JOIN unnest(p_children) AS new (id) ON new.id = child.id
        LEFT JOIN timeball.job AS parent ON parent.uuid = edge.parent
    )
    SELECT array_agg(found.child), array_agg(found.parent), array_agg(found.uuid),
        array_agg(found.rule), array_agg(found.own), array_agg(found.joins),
        min(coalesce(found.uuid::text, 'null'))
            FILTER (WHERE coalesce(found.parent >= found.child, true))
    INTO v_children, v_parents, v_uuids, v_rules, v_own, v_joins, v_wrong FROM found;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'after names job %, which is not here: submit parents first', v_wrong
            USING ERRCODE = 'TB002';
    END IF;

    -- A batch of nothing has ended, before its own children look.
    INSERT INTO timeball.ended (job_id, turn, event, reason)
    SELECT job.id, 1, 'succeeded', 'members' FROM timeball.job
    WHERE job.id = ANY (p_children) AND job.kind = 'timeball.batch'
      AND job.id <> ALL (coalesce(v_children, '{}'))
      AND job.args -> 'open' IS DISTINCT FROM 'true'::jsonb
    ORDER BY job.id;

    INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, joins, linked_at)
    SELECT u.child, u.parent, u.uuid, u.rule, u.joins,
        CASE WHEN u.own AND (
            SELECT 1 FROM timeball.ended WHERE ended.job_id = u.parent LIMIT 1) IS NULL
        THEN timeball.clock() END
    FROM unnest(v_children, v_parents, v_uuids, v_rules, v_own, v_joins)
        AS u (child, parent, uuid, rule, own, joins)
    ORDER BY u.child, u.parent
    ON CONFLICT DO NOTHING;

    INSERT INTO timeball.held (job_id, turn, state, lane, kind, key, reason, expires_at,
        all_left, one_left, one_met, lost)
    SELECT job.id, 1, 'waiting', job.lane, job.kind, job.key, 'parents', job.expires_at,
        needs.alls, needs.ones, needs.ones = 0, false
    FROM (
        SELECT edge.child, count(*) FILTER (WHERE edge.rule NOT LIKE 'one%') AS alls,
            count(*) FILTER (WHERE edge.rule LIKE 'one%') AS ones
        FROM timeball.dependency AS edge
        WHERE edge.child = ANY (p_children) AND NOT edge.joins GROUP BY edge.child
    ) AS needs
    JOIN timeball.job ON job.id = needs.child
    UNION ALL
    SELECT job.id, 1, 'waiting', job.lane, job.kind, NULL,
        CASE job.args -> 'open' WHEN 'true' THEN 'open' ELSE 'members' END, NULL, 0, 0, true, false
    FROM timeball.job
    WHERE job.id = ANY (p_children) AND job.kind = 'timeball.batch' AND NOT EXISTS (
        SELECT FROM timeball.ended WHERE ended.job_id = job.id);
END
$function$;
