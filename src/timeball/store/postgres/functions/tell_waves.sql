-- event: skip (waiting -> skipped, failed)
-- Decide the linked edges of jobs that have ended, and of those that this rules out, and so on.
-- Returns who may start now, and all that have ended with how. A part of `tell_children`: the
-- rows of all children that may change are locked.
CREATE OR REPLACE FUNCTION timeball.tell_waves(
    p_ended bigint[], p_events text[],
    OUT o_free bigint[], OUT o_ended bigint[], OUT o_events text[]
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_skipped bigint[] := '{}';
    v_failed bigint[] := '{}';
    v_group record;
    v_told record;
BEGIN
    o_free := '{}';
    o_ended := p_ended;
    o_events := p_events;
    FOR v_group IN
        SELECT u.event, array_agg(u.job_id) AS jobs
        FROM unnest(p_ended, p_events) AS u (job_id, event) GROUP BY u.event ORDER BY u.event
    LOOP
        v_told := timeball.decide_edges(v_group.jobs, v_group.event);
        o_free := o_free || v_told.o_free;
        v_skipped := v_skipped || v_told.o_skipped;
        v_failed := v_failed || v_told.o_failed;
    END LOOP;
    WHILE v_skipped <> '{}' OR v_failed <> '{}' LOOP
        IF v_skipped <> '{}' THEN
            o_ended := o_ended || v_skipped;
            o_events := o_events || array_fill('skipped'::text, ARRAY[cardinality(v_skipped)]);
            v_told := timeball.decide_edges(v_skipped, 'skipped');
            v_skipped := v_told.o_skipped;
            v_failed := v_failed || v_told.o_failed;
        ELSE
            o_ended := o_ended || v_failed;
            o_events := o_events || array_fill('failed'::text, ARRAY[cardinality(v_failed)]);
            v_told := timeball.decide_edges(v_failed, 'failed');
            v_skipped := v_told.o_skipped;
            v_failed := v_told.o_failed;
        END IF;
        o_free := o_free || v_told.o_free;
    END LOOP;
END
$function$;
