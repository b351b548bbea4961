-- event: release, skip (waiting -> pending, scheduled, skipped, failed)
-- Decide the linked edges of those of some jobs that have ended: children that may start now line
-- up, others are ruled out, which decides the edges of their own children, and so on. Returns the
-- keys of those that wait for room among the jobs of their key now.
--
-- Called in the transaction that ended the jobs, which held the graph lock before it did so, and
-- as a later statement: an edge that was linked meanwhile is seen only by a newer snapshot. The
-- counters on a child's own row say what it waits for; its parents are never read again, for two
-- that end at the same time do not see each other.
-- All children that may change are locked first, in the order of their ids: nobody can add to
-- them, since linking takes the graph lock alone.
CREATE OR REPLACE FUNCTION timeball.tell_children(p_jobs bigint[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_ended bigint[];
    v_events text[];
    v_touched bigint[];
    v_free bigint[] := '{}';
    v_skipped bigint[] := '{}';
    v_failed bigint[] := '{}';
    v_group record;
    v_told record;
BEGIN
    SELECT array_agg(fate.job_id), array_agg(fate.event) INTO v_ended, v_events
    FROM timeball.fates(p_jobs) AS fate;
    IF v_ended IS NULL THEN
        RETURN NULL;
    END IF;
    v_touched := timeball.descendants(v_ended, v_events);
    PERFORM 1 FROM timeball.held
    WHERE held.job_id = ANY (v_touched) AND held.state = 'waiting'
    ORDER BY held.job_id
    FOR UPDATE;

    FOR v_group IN
        SELECT u.event, array_agg(u.job_id) AS jobs
        FROM unnest(v_ended, v_events) AS u (job_id, event) GROUP BY u.event ORDER BY u.event
    LOOP
        v_told := timeball.decide_edges(v_group.jobs, v_group.event);
        v_free := v_free || v_told.o_free;
        v_skipped := v_skipped || v_told.o_skipped;
        v_failed := v_failed || v_told.o_failed;
    END LOOP;
    WHILE v_skipped <> '{}' OR v_failed <> '{}' LOOP
        IF v_skipped <> '{}' THEN
            v_told := timeball.decide_edges(v_skipped, 'skipped');
            v_skipped := v_told.o_skipped;
            v_failed := v_failed || v_told.o_failed;
        ELSE
            v_told := timeball.decide_edges(v_failed, 'failed');
            v_skipped := v_told.o_skipped;
            v_failed := v_told.o_failed;
        END IF;
        v_free := v_free || v_told.o_free;
    END LOOP;
    RETURN timeball.set_free(v_free);
END
$function$;
