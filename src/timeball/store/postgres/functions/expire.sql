-- event: expire, release (running -> pending, failed, cancelled)
-- Give a dead worker up: end its open turns and let their jobs go on elsewhere. Returns how
-- many were released, lost, failed; no row where the worker has beaten since p_beat, or was
-- given up before. p_begun says which turns had begun; null: unknown, so all of them. p_began says
-- when, in epoch seconds; null, 0: unknown.
--
-- Takes the worker's row first: a claim that is in progress commits before it, and a later
-- one finds the worker gone, so that no lease escapes.
CREATE OR REPLACE FUNCTION timeball.expire(
    p_worker bigint, p_beat bigint, p_begun_jobs bigint[], p_begun_turns integer[], p_reason text,
    p_began double precision[] DEFAULT NULL
) RETURNS TABLE (released bigint, lost bigint, failed bigint, cancelled bigint) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_jobs bigint[];
    v_turns integer[];
    v_events text[];
    v_reasons text[];
    v_kept bigint[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'expiring needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    PERFORM timeball.share_graph();
    -- The UPDATE alone would not wait for the key share lock of a claim.
    PERFORM 1 FROM timeball.worker
    WHERE worker.id = p_worker AND worker.ended_at IS NULL
      AND (p_beat IS NULL OR worker.beat = p_beat)
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE timeball.worker SET ended_at = timeball.clock(), end_reason = p_reason
    WHERE worker.id = p_worker;

    WITH open AS MATERIALIZED (
        SELECT granted.job_id, granted.turn, p_begun_jobs IS NULL OR EXISTS (
                SELECT FROM unnest(p_begun_jobs, p_begun_turns) AS begun (job_id, turn)
                WHERE begun.job_id = granted.job_id AND begun.turn = granted.turn) AS begun
        FROM timeball.lane
        CROSS JOIN LATERAL (
            SELECT lease.floor FROM timeball.lease
            WHERE lease.worker = p_worker AND lease.lane = lane.id
            ORDER BY lease.seq DESC LIMIT 1
        ) AS newest
        JOIN timeball.lease
            ON lease.worker = p_worker AND lease.lane = lane.id AND lease.seq >= newest.floor
        CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
        WHERE (
            SELECT 1 FROM timeball.ended
            WHERE ended.job_id = granted.job_id AND ended.turn = granted.turn) IS NULL
    ),
    fate AS MATERIALIZED (
        SELECT open.job_id, open.turn, open.begun,
            CASE
                WHEN open.turn >= 2147483646 THEN 'turns'  -- there is no number for another
                WHEN NOT open.begun THEN NULL
                WHEN job.at_most_once THEN 'lost'
                WHEN coalesce(entry.crashes, 0) + 1 >= job.max_crashes THEN 'quarantined'
            END AS failure
        FROM open
        JOIN timeball.job ON job.id = open.job_id
        LEFT JOIN timeball.entry
            ON entry.job_id = open.job_id AND entry.turn = open.turn AND entry.attempts IS NOT NULL
    ),
    written AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason, worker, began_at, error)
        SELECT fate.job_id, fate.turn,
            CASE WHEN fate.failure IS NOT NULL THEN 'failed'
                WHEN fate.begun THEN 'lost' ELSE 'released' END,
            coalesce(fate.failure, 'worker died'), p_worker,
            CASE WHEN fate.begun THEN (
                SELECT to_timestamp(nullif(began.at, 0))
                FROM unnest(p_begun_jobs, p_begun_turns, p_began) AS began (job_id, turn, at)
                WHERE began.job_id = fate.job_id AND began.turn = fate.turn) END,
            CASE fate.failure
                WHEN 'turns' THEN 'it has had 2,147,483,646 turns, and no more can be counted'
                WHEN 'lost' THEN 'its worker died during the attempt, and it runs at most once'
                WHEN 'quarantined' THEN 'its worker died during an attempt too many times'
            END
        FROM fate ORDER BY fate.job_id, fate.turn
        ON CONFLICT DO NOTHING
        RETURNING ended.job_id, ended.turn, ended.event, ended.reason
    )
    SELECT array_agg(w.job_id), array_agg(w.turn), array_agg(w.event), array_agg(w.reason)
    INTO v_jobs, v_turns, v_events, v_reasons FROM written AS w;

    -- A turn may have been settled, and its job deleted, since it was seen open.
    IF EXISTS (SELECT FROM timeball.deletion WHERE deletion.upto >= ANY (v_jobs)) THEN
        SELECT kept.o_jobs INTO v_kept FROM timeball.disown(v_jobs, v_turns) AS kept;
        SELECT array_agg(u.job_id), array_agg(u.turn), array_agg(u.event), array_agg(u.reason)
        INTO v_jobs, v_turns, v_events, v_reasons
        FROM unnest(v_jobs, v_turns, v_events, v_reasons) AS u (job_id, turn, event, reason)
        WHERE u.job_id = ANY (v_kept);
    END IF;

    INSERT INTO timeball.event (kind, worker, detail)
    SELECT 'worker_expired', p_worker, format('%s open turns', coalesce(cardinality(v_jobs), 0))
    WHERE p_reason = 'expired';
    PERFORM timeball.follow(
        array_agg(u.job_id), array_agg(u.turn), array_agg(u.event), array_agg(u.reason),
        array_agg(NULL::double precision), array_agg(u.event = 'lost'))
    FROM unnest(v_jobs, v_turns, v_events, v_reasons) AS u (job_id, turn, event, reason)
    WHERE u.event <> 'failed'
    HAVING count(*) > 0;
    PERFORM timeball.admit_keys(
        timeball.tell_children(v_jobs) || timeball.free_slots(v_jobs), 1000);

    RETURN QUERY
    SELECT count(*) FILTER (WHERE u.event = 'released' AND NOT u.unwanted),
        count(*) FILTER (WHERE u.event = 'lost' AND NOT u.unwanted),
        count(*) FILTER (WHERE u.event = 'failed'), count(*) FILTER (WHERE u.unwanted)
    FROM (
        SELECT w.event, EXISTS (
            SELECT FROM timeball.ended WHERE ended.job_id = w.job_id AND ended.turn = w.turn + 1
        ) AS unwanted
        FROM unnest(v_jobs, v_turns, v_events) AS w (job_id, turn, event)
    ) AS u;
END
$function$;
