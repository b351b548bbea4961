-- event: release, skip (waiting -> pending, scheduled, skipped, failed)
-- Link up to p_limit edges to parents that existed before their children were submitted, and
-- return how many; those whose parents have ended are decided in the same transaction. Null where
-- the graph lock was not to be had: look again later.
--
-- Whoever ends a job has the graph lock shared before he writes that, and looks for linked edges
-- afterwards. Here it is taken alone, so that of two that meet one sees what the other has done.
-- It is waited for a moment only: who wants it shared meanwhile stands behind this.
CREATE OR REPLACE FUNCTION timeball.link(p_limit integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_children bigint[];
    v_parents bigint[];
    v_busy bigint[] := '{}';
    v_looked bigint[] := '{}';
    v_some integer;
    v_linked integer := 0;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'linking needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    IF NOT EXISTS (SELECT FROM timeball.dependency WHERE dependency.linked_at IS NULL) THEN
        RETURN 0;
    END IF;
    IF NOT timeball.lock_graph() THEN
        RETURN NULL;
    END IF;
    LOOP
        WITH chosen AS MATERIALIZED (
            SELECT dependency.child, dependency.parent FROM timeball.dependency
            WHERE dependency.linked_at IS NULL AND dependency.parent <> ALL (v_busy)
            ORDER BY dependency.child, dependency.parent
            LIMIT p_limit - v_linked
            FOR NO KEY UPDATE SKIP LOCKED
        )
        SELECT array_agg(chosen.child ORDER BY chosen.child, chosen.parent),
            array_agg(chosen.parent ORDER BY chosen.child, chosen.parent)
        INTO v_children, v_parents FROM chosen;
        EXIT WHEN v_children IS NULL;
        -- A held parent that somebody is just replacing, in a transaction of his own, ends without
        -- the graph lock: its edges have time, and those behind them take their places.
        WITH free AS MATERIALIZED (
            SELECT held.job_id FROM timeball.held WHERE held.job_id = ANY (v_parents)
            ORDER BY held.job_id
            FOR KEY SHARE SKIP LOCKED
        )
        SELECT v_busy || array_agg(held.job_id) INTO v_busy FROM timeball.held
        WHERE held.job_id = ANY (v_parents)
          AND held.job_id <> ALL (array(SELECT free.job_id FROM free));
        UPDATE timeball.dependency AS edge SET linked_at = timeball.clock()
        FROM unnest(v_children, v_parents) AS u (child, parent)
        WHERE edge.linked_at IS NULL AND edge.child = u.child AND edge.parent = u.parent
          AND (edge.child, edge.parent) <= (
              v_children[cardinality(v_children)], v_parents[cardinality(v_parents)])
          AND edge.parent <> ALL (v_busy);
        GET DIAGNOSTICS v_some = ROW_COUNT;
        v_linked := v_linked + v_some;
        v_looked := v_looked || v_parents;
        EXIT WHEN v_some = cardinality(v_children);
    END LOOP;
    PERFORM timeball.admit_keys(timeball.tell_children(v_looked), 1000);
    RETURN v_linked;
END
$function$;
