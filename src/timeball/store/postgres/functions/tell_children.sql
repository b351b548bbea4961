-- event: release, skip, join
--   (waiting -> pending, scheduled, skipped, failed, succeeded, cancelled)
-- Decide the linked edges of those of some jobs that have ended: children that may start now line
-- up, others are ruled out, which decides the edges of their own children, and so on; batches end
-- of which nothing is left. Returns the keys of those that wait for room among the jobs of their
-- key now.
--
-- Called in the transaction that ended the jobs, which held the graph lock before it did so, and
-- as a later statement: an edge that was linked meanwhile is seen only by a newer snapshot. The
-- counters on a child's own row say what it waits for; its parents are never read again, for two
-- that end at the same time do not see each other.
-- All children that may change are locked first, in the order of their ids: nobody can add to
-- them, since linking takes the graph lock alone. Batches come afterwards, see there.
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
    v_told := timeball.tell_waves(v_ended, v_events);
    RETURN timeball.set_free(
        v_told.o_free || timeball.end_batches(v_told.o_ended, v_told.o_events));
END
$function$;
