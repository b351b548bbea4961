-- event: claim, lapse (pending -> running, skipped)
-- Grant up to p_limit pending turns of the worker's queues by appending one lease, and
-- return its key; nulls where no lane has any. A lease may hold no turn at all, where all that
-- were examined had ended before: ask again; also where o_again says that somebody had a lane.
--
-- Those that have not begun by their deadline are skipped in passing, never granted.
--
-- Of the lanes that are not empty the one comes first whose head is oldest, where a priority
-- class is worth p_aging_s seconds. What is granted is of one lane: a job is overtaken by those
-- of one claim at most. A paused queue is left out.
--
-- The window (prev, cur] of a lane holds the entries visible in cur and not in prev, so
-- every committed entry is in exactly one window, however late its transaction commits;
-- `ahead` says how it is read.
--
-- Of a queue with a limit no more is granted than it has free slots, which are taken here; of one
-- whose starts are limited no more than the caller has permits, as p_permits says.
--
-- Locks: the advisory lock of one lane, and those of others where nobody has them, then the
-- worker's row, so that it cannot be given up meanwhile, then that of the limit. They
-- are gone before the answer is sent: it is far smaller than the server's output buffer, which
-- is flushed after the commit.
-- Plan: pinned, because statistics of a near-empty table cost several times the work.
CREATE OR REPLACE FUNCTION timeball.claim(
    p_worker bigint, p_limit integer, p_request uuid, p_lanes integer[], p_floors bigint[],
    p_newest bigint[] DEFAULT NULL, p_aging_s double precision DEFAULT 10,
    p_permits jsonb DEFAULT '{}', OUT o_lane integer, OUT o_seq bigint, OUT o_again boolean
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_queues text[];
    v_lanes integer[];
    v_names text[];
    v_priorities integer[];
    v_limits integer[];
    v_rates boolean[];
    v_order integer[];
    v_n integer;
    v_lane integer;
    v_holds boolean := false;
    v_queue text;
    v_at_once integer;
    v_rated boolean;
    v_limit integer;
    v_at record;
    v_prev pg_snapshot;
    v_cur pg_snapshot;
    v_pos_xid xid8;
    v_pos_id bigint;
    v_jobs bigint[];
    v_turns integer[];
    v_late bigint[];
    v_timed bigint;
    v_taken integer;
BEGIN
    -- A claim cannot see what its own transaction wrote, and under REPEATABLE READ it
    -- would read the lane as it was before it waited for the lock.
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'a claim runs alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;

    IF NOT timeball.at_home() THEN
        RAISE EXCEPTION 'the ledger has come from another server, or a standby was promoted'
            USING ERRCODE = 'TB005', HINT = 'Call timeball.move_in() first.';
    END IF;

    SELECT worker.queues INTO v_queues
    FROM timeball.worker WHERE worker.id = p_worker AND worker.ended_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker % was given up', p_worker USING ERRCODE = 'TB001';
    END IF;

    SELECT array_agg(lane.id), array_agg(lane.queue), array_agg(lane.priority),
        array_agg(limiter.at_once), array_agg(limiter.starts IS NOT NULL)
    INTO v_lanes, v_names, v_priorities, v_limits, v_rates
    FROM timeball.lane
    LEFT JOIN timeball.limiter ON limiter.scope = 'queue' AND limiter.name = lane.queue
    WHERE lane.queue = ANY (v_queues);
    -- The head of a lane that is alone need not be known, and costs a good part of a claim.
    IF cardinality(v_lanes) = 1 THEN
        v_order := '{1}';
    ELSE
        SELECT array_agg(lane.n ORDER BY
            extract(epoch FROM head.at)::double precision - lane.priority * p_aging_s,
            lane.priority DESC, lane.id)
        INTO v_order
        FROM unnest(v_lanes, v_priorities) WITH ORDINALITY AS lane (id, priority, n)
        CROSS JOIN LATERAL (
            SELECT coalesce(
                (SELECT line.at FROM timeball.line_of(lane.id, 20) AS line WHERE line.live LIMIT 1),
                (SELECT line.at FROM timeball.line_of(lane.id, 1) AS line))
            OFFSET 0  -- once, though it is named twice below
        ) AS head (at)
        WHERE head.at IS NOT NULL;
    END IF;

    FOREACH v_n IN ARRAY coalesce(v_order, '{}') LOOP
        v_lane := v_lanes[v_n];
        v_queue := v_names[v_n];
        v_at_once := v_limits[v_n];
        v_rated := v_rates[v_n];
        -- Who holds a lane waits for no other one, so that the order may change with the time.
        IF NOT v_holds THEN
            PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);
            v_holds := true;
        ELSIF NOT pg_try_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane) THEN
            o_again := true;
            CONTINUE;
        END IF;
        -- Sent again, for its answer was lost or late. Asked under the lock: the first of the
        -- two may have been granted while this one waited.
        SELECT lease.lane, lease.seq INTO o_lane, o_seq
        FROM timeball.lease WHERE lease.request = p_request;
        IF FOUND THEN
            RETURN;
        END IF;
        -- Granted to an earlier request of this worker that it has given up waiting for: a
        -- backend may come to the lane after its client has gone. Nobody else would find it.
        SELECT lease.lane, lease.seq INTO o_lane, o_seq
        FROM timeball.lease
        WHERE p_newest IS NOT NULL AND lease.worker = p_worker AND lease.lane = v_lane
          AND lease.seq > coalesce(p_newest[array_position(p_lanes, v_lane)], 0)
          AND cardinality(lease.job_ids) > 0
        ORDER BY lease.seq LIMIT 1;
        IF FOUND THEN
            RETURN;
        END IF;
        -- Under the lock: whoever pauses a queue waits for this claim, or is seen by it.
        SELECT newest.*, EXISTS (
            SELECT FROM timeball.queue
            WHERE queue.name = v_queue AND queue.paused_at IS NOT NULL) AS paused
        INTO v_at
        FROM (SELECT 1) AS one (row)
        LEFT JOIN LATERAL (
            SELECT lease.seq, lease.prev, lease.cur, lease.pos_xid, lease.pos_id
            FROM timeball.lease WHERE lease.lane = v_lane ORDER BY lease.seq DESC LIMIT 1
        ) AS newest ON true;
        CONTINUE WHEN v_at.paused;
        v_limit := p_limit;
        IF v_rated THEN
            v_limit := least(p_limit, (p_permits ->> v_queue)::integer);
            CONTINUE WHEN NOT p_permits ? v_queue OR v_limit <= 0;
        END IF;
        IF v_at_once IS NOT NULL THEN
            v_limit := least(v_limit, v_at_once - (
                SELECT count(*) FROM timeball.slot
                WHERE slot.scope = 'queue' AND slot.name = v_queue));
            CONTINUE WHEN v_limit <= 0;
        END IF;
        IF v_at.seq IS NOT NULL THEN
            v_prev := v_at.prev; v_cur := v_at.cur;
            v_pos_xid := v_at.pos_xid; v_pos_id := v_at.pos_id;
        ELSE  -- nothing is visible in the first snapshot of all
            v_prev := '1:1:'; v_cur := '1:1:'; v_pos_xid := '0'; v_pos_id := 0;
        END IF;

        FOR v_window IN 1..2 LOOP
            WITH seen AS MATERIALIZED (
                SELECT found.xid, found.job_id, found.turn, found.expires_at
                FROM timeball.ahead(v_prev, v_cur, v_pos_xid, v_pos_id) AS ahead
                CROSS JOIN LATERAL (
                    SELECT entry.xid, entry.job_id, entry.turn, entry.expires_at
                    FROM timeball.entry
                    WHERE entry.lane = v_lane
                      AND (entry.xid, entry.job_id) > (ahead.lo_xid, ahead.lo_id)
                      AND (entry.xid, entry.job_id) <= (ahead.hi_xid, ahead.hi_id)
                    ORDER BY entry.xid, entry.job_id
                ) AS found
                LIMIT 2 * v_limit + 100
            ),
            -- A scalar subquery stays an index probe per row; NOT EXISTS became an anti
            -- join over all of ended. The CTE is read only as far as the LIMIT needs.
            live AS MATERIALIZED (
                SELECT seen.xid, seen.job_id, seen.turn, seen.expires_at
                FROM seen
                WHERE (
                    SELECT 1 FROM timeball.ended
                    WHERE ended.job_id = seen.job_id AND ended.turn = seen.turn
                ) IS NULL
                LIMIT v_limit
            ),
            taken AS MATERIALIZED (
                SELECT array_agg(live.job_id) AS jobs, array_agg(live.turn) AS turns,
                    count(live.expires_at) AS timed,
                    (array_agg(live.xid))[count(*)] AS xid, (array_agg(live.job_id))[count(*)] AS id,
                    count(*) AS n
                FROM live
            )
            SELECT coalesce(taken.jobs, '{}'), coalesce(taken.turns, '{}'), taken.timed,
                pos.xid, pos.id
            INTO v_jobs, v_turns, v_timed, v_pos_xid, v_pos_id
            FROM taken CROSS JOIN LATERAL (
                SELECT taken.xid, taken.id WHERE taken.n = v_limit
                UNION ALL
                (SELECT seen.xid, seen.job_id FROM seen WHERE taken.n < v_limit
                 ORDER BY seen.xid DESC, seen.job_id DESC LIMIT 1)
            ) AS pos;
            EXIT WHEN v_jobs IS NOT NULL OR v_window = 2;
            v_prev := v_cur; v_cur := pg_current_snapshot(); v_pos_xid := '0'; v_pos_id := 0;
        END LOOP;

        IF v_jobs IS NOT NULL THEN
            -- Only now: the lock takes a transaction number, and idle workers ask all the time.
            PERFORM 1 FROM timeball.worker
            WHERE worker.id = p_worker AND worker.ended_at IS NULL FOR KEY SHARE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'worker % was given up', p_worker USING ERRCODE = 'TB001';
            END IF;
            PERFORM timeball.durable();
            IF v_timed > 0 THEN
                PERFORM timeball.share_graph();
                WITH written AS (
                    INSERT INTO timeball.ended (job_id, turn, event, reason)
                    SELECT late.job_id, late.turn, 'expired', 'expired'
                    FROM timeball.late_turns(v_jobs, v_turns) AS late
                    RETURNING ended.job_id
                )
                SELECT array_agg(written.job_id) INTO v_late FROM written;
                PERFORM timeball.free_slots(v_late), timeball.unlink(v_late) WHERE v_late IS NOT NULL;
                SELECT coalesce(array_agg(live.job_id ORDER BY live.n), '{}'),
                    coalesce(array_agg(live.turn ORDER BY live.n), '{}')
                INTO v_jobs, v_turns
                FROM unnest(v_jobs, v_turns) WITH ORDINALITY AS live (job_id, turn, n)
                WHERE v_late IS NULL OR live.job_id <> ALL (v_late);
            END IF;
            IF v_at_once IS NOT NULL AND v_jobs <> '{}' THEN
                -- Claims of other lanes of this queue end here one after the other.
                SELECT limiter.at_once INTO v_at_once FROM timeball.limiter
                WHERE limiter.name = v_queue AND limiter.scope = 'queue' FOR NO KEY UPDATE;
                IF FOUND THEN
                    v_taken := cardinality(
                        timeball.take_slots('queue', v_queue, v_at_once, v_jobs));
                    IF v_taken = 0 THEN
                        RETURN;
                    ELSIF v_taken < cardinality(v_jobs) THEN
                        v_jobs := v_jobs[:v_taken];
                        v_turns := v_turns[:v_taken];
                        v_pos_id := v_jobs[v_taken];
                        SELECT latest.xid INTO v_pos_xid
                        FROM timeball.latest_entry(v_pos_id) AS latest;
                    END IF;
                END IF;
            END IF;
            o_lane := v_lane;
            o_seq := coalesce(v_at.seq, 0) + 1;
            INSERT INTO timeball.lease
                (lane, seq, worker, request, floor, prev, cur, pos_xid, pos_id, job_ids, turns,
                at_once)
            VALUES (o_lane, o_seq, p_worker, p_request,
                coalesce(p_floors[array_position(p_lanes, v_lane)], o_seq),
                v_prev, v_cur, v_pos_xid, v_pos_id, v_jobs, v_turns, v_at_once);
            RETURN;
        END IF;
    END LOOP;

    -- Lanes where nothing waits were not looked at: one may hold what this was granted before,
    -- when it was sent for the first time, or an earlier request.
    SELECT lease.lane, lease.seq INTO o_lane, o_seq
    FROM timeball.lease WHERE lease.request = p_request;
    IF NOT FOUND AND p_newest IS NOT NULL THEN
        SELECT unheard.lane, unheard.seq INTO o_lane, o_seq
        FROM timeball.lane
        CROSS JOIN LATERAL (
            SELECT lease.lane, lease.seq FROM timeball.lease
            WHERE lease.worker = p_worker AND lease.lane = lane.id
              AND lease.seq > coalesce(p_newest[array_position(p_lanes, lane.id)], 0)
              AND cardinality(lease.job_ids) > 0
            ORDER BY lease.seq LIMIT 1
        ) AS unheard
        WHERE lane.queue = ANY (v_queues)
        LIMIT 1;
    END IF;
END
$function$;
