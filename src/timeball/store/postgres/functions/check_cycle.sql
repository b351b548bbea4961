-- Raise TB002 where a job would wait for itself if it waited for those of p_known, which are there,
-- and for those of p_spawned, which are new: edges of these that are not linked lead to what was.
-- The graph lock must be held alone, so that of two that add edges at once one sees what the other
-- has done. Looks at each edge that is waited for once; the text, which p_does begins, names the way.
CREATE OR REPLACE FUNCTION timeball.check_cycle(
    p_job bigint, p_does text, p_spawned bigint[], p_known bigint[]
) RETURNS void LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_jobs bigint[];
    v_before bigint[];
    v_from jsonb;  -- by job, which one it was reached from; by their numbers it would be n * n
    v_path bigint[] := ARRAY[p_job];
    v_next bigint;
BEGIN
    WITH RECURSIVE reached (job_id, before) AS (
        SELECT u.id, 0::bigint FROM unnest(p_known) AS u (id)
        UNION
        SELECT edge.parent, 0::bigint FROM timeball.dependency AS edge
        WHERE edge.child = ANY (p_spawned) AND edge.linked_at IS NULL
        UNION
        SELECT edge.parent, reached.job_id
        FROM reached
        CROSS JOIN LATERAL (
            SELECT open.parent FROM timeball.held
            JOIN timeball.dependency AS open ON open.child = held.job_id
            WHERE held.job_id = reached.job_id AND held.state = 'waiting'
              AND open.decided_at IS NULL
            OFFSET 0
        ) AS edge
        WHERE reached.job_id <> p_job
    )
    SELECT array_agg(reached.job_id), array_agg(reached.before) INTO v_jobs, v_before FROM reached;
    IF v_jobs IS NULL OR p_job <> ALL (v_jobs) THEN
        RETURN;
    END IF;
    SELECT jsonb_object_agg(u.job_id, u.before ORDER BY u.before DESC) INTO v_from
    FROM unnest(v_jobs, v_before) AS u (job_id, before);
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
