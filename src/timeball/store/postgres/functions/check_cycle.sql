-- Raise TB002 where a job would wait for itself if it waited for those of p_known, which are there,
-- and for those of p_spawned, which are new: edges of these that are not linked lead to what was.
-- The graph lock must be held alone, so that of two that add edges at once one sees what the other
-- has done. Looks at the edges of each job once; the text, which p_does begins, names the way.
CREATE OR REPLACE FUNCTION timeball.check_cycle(
    p_job bigint, p_does text, p_spawned bigint[], p_known bigint[], p_again boolean
) RETURNS void LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_first bigint[] := array(
        SELECT u.id FROM unnest(p_known) AS u (id)
        UNION
        SELECT edge.parent FROM timeball.dependency AS edge
        WHERE edge.child = ANY (p_spawned) AND edge.linked_at IS NULL);
    v_jobs bigint[];
    v_from jsonb;  -- by job, which one it was reached from; by their numbers it would be n * n
    v_path bigint[] := ARRAY[p_job];
    v_next bigint;
BEGIN
    WITH RECURSIVE reached (job_id) AS (
        SELECT u.id FROM unnest(v_first) AS u (id)
        UNION
        SELECT edge.parent
        FROM reached CROSS JOIN LATERAL timeball.waits_for(reached.job_id, p_again) AS edge (parent)
        WHERE reached.job_id <> p_job
    )
    SELECT array_agg(reached.job_id) INTO v_jobs FROM reached;
    IF v_jobs IS NULL OR p_job <> ALL (v_jobs) THEN
        RETURN;
    END IF;
    SELECT jsonb_object_agg(way.job_id, way.before ORDER BY way.before DESC) INTO v_from
    FROM (
        SELECT u.id AS job_id, 0::bigint AS before FROM unnest(v_first) AS u (id)
        UNION ALL
        SELECT edge.parent, u.id
        FROM unnest(v_jobs) AS u (id)
        CROSS JOIN LATERAL timeball.waits_for(u.id, p_again) AS edge (parent)
        WHERE u.id <> p_job
    ) AS way;
    LOOP
        v_next := v_from ->> v_path[cardinality(v_path)]::text;
        EXIT WHEN v_next = 0;
        v_path := v_path || v_next;
    END LOOP;
    RAISE EXCEPTION 'job % % job %: a cycle; leave one of these edges out', p_job, p_does, (
        SELECT string_agg(u.id::text, ', which waits for job ' ORDER BY u.n DESC)
        FROM unnest(v_path) WITH ORDINALITY AS u (id, n)
    ) USING ERRCODE = 'TB002';
END
$function$;
