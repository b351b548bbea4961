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
    v_pairs bigint[] := '{}';  -- batches, each beside one of its members
    v_members bigint[] := '{}';
    v_hows text[] := '{}';
    v_free bigint[] := '{}';
    v_batch bigint;
    v_group record;
    v_told record;
BEGIN
    LOOP
        SELECT array_agg(edge.child) AS batches, array_agg(u.job_id) AS jobs,
            array_agg(u.event) AS events
        INTO v_open
        FROM unnest(v_ended, v_events) AS u (job_id, event)
        CROSS JOIN LATERAL (
            SELECT open.child FROM timeball.dependency AS open
            WHERE open.parent = u.job_id AND open.decided_at IS NULL
              AND open.linked_at IS NOT NULL AND open.joins
            OFFSET 0
        ) AS edge;
        v_pairs := v_pairs || v_open.batches;
        v_members := v_members || v_open.jobs;
        v_hows := v_hows || v_open.events;
        v_ended := '{}';
        v_batch := (SELECT min(u.batch) FROM unnest(v_pairs) AS u (batch));
        EXIT WHEN v_batch IS NULL;

        FOR v_group IN  -- not a join with them, which would be one of n * n
            SELECT own.event, array_agg(own.job_id) AS jobs
            FROM unnest(v_pairs, v_members, v_hows) AS own (batch, job_id, event)
            WHERE own.batch = v_batch GROUP BY own.event ORDER BY own.event
        LOOP
            -- By the members' index: read from the batch's side, which before PostgreSQL 17 looks
            -- cheaper, a large batch would be read as a whole each time.
            UPDATE timeball.dependency AS edge
            SET decided_at = timeball.clock(), met = timeball.is_met(edge.rule, v_group.event)
            WHERE edge.parent = ANY (v_group.jobs) AND edge.child + 0 = v_batch
              AND edge.decided_at IS NULL;
        END LOOP;
        SELECT array_agg(u.batch) AS batches, array_agg(u.job_id) AS jobs,
            array_agg(u.event) AS events
        INTO v_open
        FROM unnest(v_pairs, v_members, v_hows) AS u (batch, job_id, event)
        WHERE u.batch <> v_batch;
        v_pairs := coalesce(v_open.batches, '{}');
        v_members := coalesce(v_open.jobs, '{}');
        v_hows := coalesce(v_open.events, '{}');
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
