-- Raise TB002 where a job would wait for itself if it waited for those of p_spawned, of which those
-- of p_known were there before; edges of the others that are not linked lead to what was. The graph
-- lock must be held alone, so that of two jobs that spawn at once one sees what the other has done.
-- Looks at each edge that is waited for once; the text names the way.
CREATE OR REPLACE FUNCTION timeball.check_cycle(p_job bigint, p_spawned bigint[], p_known bigint[])
RETURNS void LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_jobs bigint[];
    v_before bigint[];
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
    LOOP
        SELECT u.before INTO v_next FROM unnest(v_jobs, v_before) AS u (job_id, before)
        WHERE u.job_id = v_path[1] ORDER BY u.before LIMIT 1;
        EXIT WHEN v_next = 0;
        v_path := v_next || v_path;
    END LOOP;
    RAISE EXCEPTION 'job % spawns what waits for job %: a cycle; leave one of these edges out',
        p_job, array_to_string(v_path, ', which waits for job ') USING ERRCODE = 'TB002';
END
$function$;
