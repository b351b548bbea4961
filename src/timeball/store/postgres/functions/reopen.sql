-- event: revive (failed, cancelled, skipped -> pending, waiting)
-- Start ended jobs of a batch again, each once those of them that it comes after have ended, and
-- have the batches wait that they are in, those that have succeeded too. Returns done; changed, where
-- a job is not as it was any more at its turn; busy, where others were in the way, or edges were to be
-- linked first, which is done then: try again.
--
-- Takes the graph lock alone, as `link` does: nobody ends a job meanwhile. It waits for nothing long,
-- because who settles waits behind it.
CREATE OR REPLACE FUNCTION timeball.reopen(p_jobs bigint[], p_turns integer[])
RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off
SET lock_timeout = '200ms'
AS $function$
DECLARE
    v_all bigint[] := p_jobs;
    v_nodes bigint[] := '{}';
    v_new bigint[] := p_jobs;
    v_clashed bigint[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'retrying a batch needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    IF NOT timeball.lock_graph() THEN
        RETURN 'busy';
    END IF;
    LOOP
        v_new := array(
            SELECT DISTINCT edge.child FROM timeball.dependency AS edge
            WHERE edge.parent = ANY (v_new) AND edge.rule = 'member'
              AND edge.decided_at IS NOT NULL AND edge.child <> ALL (v_all)
            ORDER BY edge.child);
        EXIT WHEN v_new = '{}';
        v_all := v_all || v_new;
        v_nodes := v_nodes || array(
            SELECT u.id FROM unnest(v_new) AS u (id) WHERE timeball.has_ended(u.id));
    END LOOP;
    -- What came after them before, and is not linked yet, is told how they ended and not made to
    -- wait for them once more: they might come after it by now.
    IF EXISTS (
        SELECT FROM timeball.dependency AS edge
        WHERE edge.parent = ANY (v_all) AND edge.decided_at IS NULL AND edge.linked_at IS NULL)
    THEN
        PERFORM timeball.link(1000);
        RETURN 'busy';
    END IF;
    PERFORM 1 FROM timeball.job WHERE job.id = ANY (p_jobs) ORDER BY job.id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM unnest(p_jobs, p_turns) AS u (id, turn)
        LEFT JOIN LATERAL (
            SELECT one.* FROM timeball.jobs AS one WHERE one.id = u.id OFFSET 0
        ) AS jobs ON true
        WHERE jobs.id IS NULL OR jobs.turn <> u.turn OR jobs.turn >= 2147483646
           OR jobs.state NOT IN ('failed', 'cancelled', 'skipped')
           OR jobs.kind IN ('timeball.batch', 'timeball.callback'))
    THEN
        RETURN 'changed';
    END IF;
    v_clashed := timeball.retake_keys(p_jobs);
    IF v_clashed <> '{}' THEN
        RAISE EXCEPTION 'its unique key is another one''s now' USING ERRCODE = 'TB004',
            DETAIL = (SELECT job.uuid::text FROM timeball.job WHERE job.id = v_clashed[1]);
    END IF;

    UPDATE timeball.dependency AS edge SET decided_at = NULL, met = NULL
    FROM (
        SELECT told.child, told.parent FROM timeball.dependency AS told
        WHERE told.child = ANY (v_all) AND told.parent = ANY (v_all)
          AND told.decided_at IS NOT NULL AND NOT told.spawned
        ORDER BY told.child, told.parent
        FOR NO KEY UPDATE
    ) AS again
    WHERE edge.child = again.child AND edge.parent = again.parent;
    PERFORM timeball.start_again(p_jobs, v_nodes);
    PERFORM timeball.admit_keys(array_agg(job.key), 1000)
    FROM timeball.job WHERE job.id = ANY (p_jobs) AND job.key IS NOT NULL
    HAVING count(*) > 0;
    RETURN 'done';
EXCEPTION WHEN lock_not_available THEN
    RETURN 'busy';
END
$function$;
