-- Have a job that waits for parents, and has neither begun nor ended before, wait for more: p_after is
-- an array of objects of job (the uuid of one that exists) and rule. Returns added; refused, where it
-- does not wait like that; not_found; busy, where others were in the way: ask again. An edge that is
-- there with the same rule stays as it is. The new ones are left to `link`.
--
-- The graph lock is taken alone: nobody decides an edge meanwhile, and of two that would close a
-- cycle between them the second sees it. The job's row is not waited for under that lock: all who
-- end jobs would wait as long.
CREATE OR REPLACE FUNCTION timeball.add_edges(p_job uuid, p_after jsonb) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_child bigint;
    v_waits boolean;
    v_parents bigint[];
    v_uuids uuid[];
    v_rules text[];
    v_wrong text;
    v_one boolean;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'adding edges needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    IF NOT timeball.lock_graph() THEN
        RETURN 'busy';
    END IF;
    SELECT job.id INTO v_child FROM timeball.job WHERE job.uuid = p_job;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    SELECT held.state = 'waiting' AND held.reason = 'parents' AND held.turn = 1 INTO v_waits
    FROM timeball.held WHERE held.job_id = v_child FOR UPDATE SKIP LOCKED;
    IF v_waits IS NULL AND EXISTS (
        SELECT FROM timeball.held WHERE held.job_id = v_child AND held.state = 'waiting')
    THEN
        RETURN 'busy';
    END IF;
    IF v_waits IS NOT TRUE THEN
        RETURN 'refused';
    END IF;

    -- One statement: a parent may be deleted at any moment, which `link` sees.
    SELECT array_agg(job.id), array_agg(want.job), array_agg(coalesce(want.rule, 'all_success')),
        min(coalesce(want.job::text, 'null')) FILTER (WHERE job.id IS NULL)
    INTO v_parents, v_uuids, v_rules, v_wrong
    FROM jsonb_to_recordset(p_after) AS want (job uuid, rule text)
    LEFT JOIN timeball.job ON job.uuid = want.job;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'after names job %, which is not here: submit parents first', v_wrong
            USING ERRCODE = 'TB002';
    END IF;
    SELECT min(format('job %s has the rule %s there already', edge.parent_uuid, edge.rule))
    INTO v_wrong
    FROM unnest(v_parents, v_rules) AS u (parent, rule)
    JOIN timeball.dependency AS edge ON edge.child = v_child AND edge.parent = u.parent
    WHERE edge.rule <> u.rule;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION '%: leave it out, or write the same rule', v_wrong USING ERRCODE = 'TB002';
    END IF;
    PERFORM timeball.check_cycle(v_child, 'would wait for', '{}', v_parents, true);

    v_one := EXISTS (
        SELECT FROM timeball.dependency AS edge
        WHERE edge.child = v_child AND edge.rule LIKE 'one%');
    WITH added AS (
        INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, added)
        SELECT v_child, u.parent, u.uuid, u.rule, true
        FROM unnest(v_parents, v_uuids, v_rules) AS u (parent, uuid, rule)
        ORDER BY u.parent
        ON CONFLICT DO NOTHING
        RETURNING dependency.rule LIKE 'one%' AS one
    ),
    new AS (
        SELECT count(*) FILTER (WHERE NOT added.one)::integer AS alls,
            count(*) FILTER (WHERE added.one)::integer AS ones
        FROM added
    )
    UPDATE timeball.held SET all_left = held.all_left + new.alls,
        one_left = held.one_left + new.ones, one_met = held.one_met AND (v_one OR new.ones = 0)
    FROM new, (
        SELECT mine.job_id FROM timeball.held AS mine
        WHERE mine.job_id = v_child ORDER BY mine.job_id FOR NO KEY UPDATE
    ) AS locked
    WHERE held.job_id = locked.job_id;
    IF 10000 < (SELECT count(*) FROM timeball.dependency AS edge WHERE edge.child = v_child) THEN
        RAISE EXCEPTION 'job % would have more than 10,000 parents: have some come after each other',
            p_job USING ERRCODE = 'TB002';
    END IF;
    RETURN 'added';
END
$function$;
