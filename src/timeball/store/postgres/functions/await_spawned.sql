-- event: await (running -> waiting)
-- End a turn as `awaited`, and have its job wait for those of p_spawned, of which those of p_known
-- were there before. Raises TB007 where the turn was not granted so, or has ended, and TB008 where
-- its cancel was requested. A part of `spawn`, which holds the graph lock.
--
-- Locks the job's row, as `cancel` does before it writes a request: no request is missed.
CREATE OR REPLACE FUNCTION timeball.await_spawned(
    p_worker bigint, p_lane integer, p_seq bigint, p_job bigint, p_turn integer,
    p_began double precision, p_ran_s double precision, p_result text, p_spawned bigint[],
    p_known bigint[]
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
BEGIN
    PERFORM 1 FROM timeball.job WHERE job.id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT EXISTS (
        SELECT FROM timeball.lease
        CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
        WHERE lease.lane = p_lane AND lease.seq = p_seq AND lease.worker = p_worker
          AND granted.job_id = p_job AND granted.turn = p_turn
    ) THEN
        RAISE EXCEPTION 'never granted' USING ERRCODE = 'TB007';
    END IF;
    IF EXISTS (
        SELECT FROM timeball.event
        WHERE event.job_id = p_job AND event.turn = p_turn AND event.kind = 'cancel_requested'
    ) THEN
        RAISE EXCEPTION 'not wanted any more' USING ERRCODE = 'TB008';
    END IF;
    INSERT INTO timeball.ended (job_id, turn, event, began_at, ran_s, worker, result)
    VALUES (p_job, p_turn, 'awaited', to_timestamp(p_began), p_ran_s, p_worker, p_result::jsonb)
    ON CONFLICT (job_id, turn) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'has ended' USING ERRCODE = 'TB007';
    END IF;

    -- What it spawned before a revival, and does not name again, is no concern of this life.
    DELETE FROM timeball.dependency AS edge USING (
        SELECT old.child, old.parent FROM timeball.dependency AS old
        WHERE old.child = p_job AND old.spawned AND old.parent <> ALL (p_spawned)
        ORDER BY old.child, old.parent
        FOR UPDATE
    ) AS gone
    WHERE edge.child = gone.child AND edge.parent = gone.parent;
    -- An edge that was decided for an earlier turn, before a revival, counts again.
    INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, linked_at, spawned)
    SELECT p_job, job.id, job.uuid, 'all_done',
        CASE WHEN job.id <> ALL (p_known) AND (  -- nor is it a batch of nothing
            SELECT 1 FROM timeball.ended WHERE ended.job_id = job.id LIMIT 1) IS NULL
        THEN timeball.clock() END, true
    FROM timeball.job WHERE job.id = ANY (p_spawned)
    ORDER BY job.id
    ON CONFLICT (child, parent) DO UPDATE
    SET rule = 'all_done', linked_at = NULL, decided_at = NULL, met = NULL, spawned = true;

    -- What a job of a batch adds is in that batch, which cannot have ended: it waits for the job.
    INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, joins, linked_at)
    SELECT home.child, own.parent, own.parent_uuid, 'member', true, own.linked_at
    FROM timeball.dependency AS home
    CROSS JOIN timeball.dependency AS own
    WHERE home.parent = p_job AND home.rule = 'member' AND home.decided_at IS NULL
      AND own.child = p_job AND own.parent = ANY (p_spawned) AND own.parent <> ALL (p_known)
    ORDER BY home.child, own.parent
    ON CONFLICT (child, parent) DO NOTHING;

    INSERT INTO timeball.held (job_id, turn, state, lane, kind, key, reason, attempts, failures,
        crashes, all_left, one_left, one_met, lost)
    SELECT job.id, p_turn + 1, 'waiting', p_lane, job.kind, job.key, 'spawned',
        coalesce(entry.attempts, 0) + 1, coalesce(entry.failures, 0), coalesce(entry.crashes, 0),
        (SELECT count(*) FROM timeball.dependency AS edge
            WHERE edge.child = p_job AND edge.spawned AND edge.decided_at IS NULL),
        0, true, false
    FROM timeball.job
    LEFT JOIN timeball.entry
        ON entry.job_id = job.id AND entry.turn = p_turn AND entry.attempts IS NOT NULL
    WHERE job.id = p_job;
END
$function$;
