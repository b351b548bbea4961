-- event: join, release, skip
--   (waiting -> succeeded, failed, cancelled, skipped, pending, scheduled)
-- Decide the edges from jobs that have ended to the batches that they are in, end the batches of
-- which nothing is left, and decide the edges of what comes after those. Returns who may start now.
-- The last part of `tell_children`.
--
-- No row is one that all members would have to write: whoever decides an edge and finds another
-- one that nobody has in his hands leaves, and holds that one until he has committed, so that
-- whoever decides it next sees what he did. Whoever finds none may be the last: he waits for the
-- batch's own row, and looks again.
--
-- Order of the locks: after all rows of children, batch by batch in the order of their ids. What
-- ends by the end of one batch is in later ones only: members that are added later come after
-- members only.
CREATE OR REPLACE FUNCTION timeball.end_batches(p_ended bigint[], p_events text[])
RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_ended bigint[] := p_ended;  -- not looked at yet
    v_events text[] := p_events;
    v_open record;
    v_found bigint[] := '{}';  -- batches, each beside one of its members, in no order
    v_found_members bigint[] := '{}';
    v_found_hows text[] := '{}';
    v_first bigint;  -- the first batch of those
    v_pairs bigint[] := '{}';  -- the same, in order
    v_members bigint[] := '{}';
    v_hows text[] := '{}';
    v_at integer := 1;  -- where those begin that have not had their turn
    v_some bigint[] := '{}';
    v_free bigint[] := '{}';
    v_batch bigint;
    v_told record;
BEGIN
    LOOP
        IF v_ended <> '{}' THEN
            SELECT array_agg(edge.child) AS batches, array_agg(u.job_id) AS jobs,
                array_agg(u.event) AS events, min(edge.child) AS first
            INTO v_open
            FROM unnest(v_ended, v_events) AS u (job_id, event)
            CROSS JOIN LATERAL (
                SELECT open.child FROM timeball.dependency AS open
                WHERE open.parent = u.job_id AND open.decided_at IS NULL
                  AND open.linked_at IS NOT NULL AND open.joins
                OFFSET 0
            ) AS edge;
            v_found := v_found || v_open.batches;
            v_found_members := v_found_members || v_open.jobs;
            v_found_hows := v_found_hows || v_open.events;
            v_first := least(v_first, v_open.first);
            v_ended := '{}';
        END IF;
        v_batch := v_pairs[v_at];
        IF v_batch IS NULL OR v_first <= v_batch THEN  -- only now: for each it would be n * n
            SELECT array_agg(u.batch ORDER BY u.batch, u.event) AS batches,
                array_agg(u.job_id ORDER BY u.batch, u.event) AS jobs,
                array_agg(u.event ORDER BY u.batch, u.event) AS events
            INTO v_open
            FROM unnest(v_pairs[v_at:] || v_found, v_members[v_at:] || v_found_members,
                v_hows[v_at:] || v_found_hows) AS u (batch, job_id, event);
            v_pairs := v_open.batches;
            v_members := v_open.jobs;
            v_hows := v_open.events;
            v_at := 1;
            v_found := '{}';
            v_found_members := '{}';
            v_found_hows := '{}';
            v_first := NULL;
            v_batch := v_pairs[v_at];
        END IF;
        EXIT WHEN v_batch IS NULL;

        WHILE v_pairs[v_at] = v_batch LOOP
            v_some := v_some || v_members[v_at];
            v_at := v_at + 1;
            CONTINUE WHEN v_pairs[v_at] = v_batch AND v_hows[v_at] = v_hows[v_at - 1];
            -- By the members' index: read from the batch's side, which before PostgreSQL 17 looks
            -- cheaper, a large batch would be read as a whole each time.
            UPDATE timeball.dependency AS edge
            SET decided_at = timeball.clock(), met = timeball.is_met(edge.rule, v_hows[v_at - 1])
            WHERE edge.parent = ANY (v_some) AND edge.child + 0 = v_batch
              AND edge.decided_at IS NULL;
            v_some := '{}';
        END LOOP;
        CONTINUE WHEN timeball.is_left(v_batch);

        v_told := timeball.end_batch(v_batch);
        CONTINUE WHEN v_told.o_ended IS NULL;
        v_free := v_free || v_told.o_free;
        v_ended := v_told.o_ended;
        v_events := v_told.o_events;
    END LOOP;
    RETURN v_free;
END
$function$;
