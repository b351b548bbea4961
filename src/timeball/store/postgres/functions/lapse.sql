-- event: lapse (scheduled, waiting, pending -> skipped)
-- Skip up to p_limit jobs whose deadline has passed before they began; return how many. A claim
-- skips those that it meets; this finds the others: in a paused queue, where no worker is, or
-- held back. Jobs without a deadline are never looked at.
--
-- Each lane in the order of a claim, under its lock, like a cancel; held ones last, when there
-- is nothing more to wait for: who has a lane may wait for one of them. A job that is running
-- may be given back before it begins, so that its deadline stays on the list, behind the others.
CREATE OR REPLACE FUNCTION timeball.lapse(p_limit integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_jobs bigint[];
    v_ended bigint[];
    v_some integer;
    v_lapsed integer := 0;
    v_lane integer;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'deadlines need READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    v_jobs := array(
        SELECT deadline.job_id FROM timeball.deadline
        WHERE deadline.look_at <= timeball.now()
        ORDER BY deadline.look_at, deadline.job_id
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED);
    IF v_jobs = '{}' THEN
        RETURN 0;
    END IF;

    PERFORM timeball.share_graph();
    FOR v_lane IN
        SELECT lane.id FROM timeball.lane
        WHERE lane.id IN (
            SELECT entry.lane FROM unnest(v_jobs) AS job (id)
            CROSS JOIN LATERAL timeball.latest_entry(job.id) AS entry)
        ORDER BY lane.priority DESC, lane.id
    LOOP
        PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);
        INSERT INTO timeball.ended (job_id, turn, event, reason)
        SELECT job.id, latest.turn, 'expired', 'expired'
        FROM unnest(v_jobs) AS job (id)
        CROSS JOIN LATERAL timeball.latest_entry(job.id) AS latest
        JOIN timeball.entry ON entry.lane = latest.lane AND entry.xid = latest.xid
            AND entry.job_id = job.id
        WHERE latest.lane = v_lane AND entry.expires_at <= timeball.now()
          AND NOT timeball.passed(latest.lane, latest.xid, job.id)
        ORDER BY job.id
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_some = ROW_COUNT;
        v_lapsed := v_lapsed + v_some;
        INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
        SELECT lane, seq + 1, prev, cur, pos_xid, pos_id, '{}', '{}'
        FROM (
            SELECT * FROM timeball.lease WHERE lease.lane = v_lane ORDER BY lease.seq DESC LIMIT 1
        ) AS newest
        WHERE v_some > 0;
    END LOOP;

    WITH late AS MATERIALIZED (
        SELECT held.job_id FROM timeball.held
        WHERE held.job_id = ANY (v_jobs) AND held.expires_at <= timeball.now()
        ORDER BY held.job_id
        FOR UPDATE SKIP LOCKED
    ),
    gone AS (
        DELETE FROM timeball.held USING late WHERE held.job_id = late.job_id
        RETURNING held.job_id, held.turn
    ),
    written AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason)
        SELECT gone.job_id, gone.turn, 'expired', 'expired' FROM gone ORDER BY gone.job_id
        RETURNING 1
    )
    SELECT v_lapsed + count(*) INTO v_lapsed FROM written;

    v_ended := array(SELECT job.id FROM unnest(v_jobs) AS job (id) WHERE timeball.has_ended(job.id));
    PERFORM timeball.unlink(v_ended);
    -- Of a key that one of them counted against the next promotion sees the room.
    PERFORM timeball.free_slots(v_ended);
    DELETE FROM timeball.deadline
    WHERE deadline.job_id = ANY (v_jobs) AND timeball.has_ended(deadline.job_id);
    UPDATE timeball.deadline SET look_at = timeball.now()
    FROM (
        SELECT deadline.job_id FROM timeball.deadline
        WHERE deadline.job_id = ANY (v_jobs) ORDER BY deadline.job_id FOR NO KEY UPDATE
    ) AS rest
    WHERE deadline.job_id = rest.job_id;
    RETURN v_lapsed;
END
$function$;
