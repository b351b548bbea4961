-- event: move, cancel (pending -> pending, cancelled)
-- Settle the ledger on the server it is on now; return how many pending turns were moved, or null
-- where it is at home already. `register` and `claim` refuse to work before this was done.
--
-- A promoted standby may lack the end of what its primary had granted. Numbers of workers, jobs
-- and lanes, and the leases of each lane, go on far beyond that end, so that none is given twice
-- and nothing that was granted there can end what is granted here.
--
-- On another server (pg_restore) the count of transactions may be behind what the ledger names.
-- Then windows mean nothing: the workers of the other server are given up, all that is pending
-- ends `moved` and has its next turn in this transaction, where each lane's next window begins.
--
-- Locks: the row of `home`, then what a claim takes, in the same order.
CREATE OR REPLACE FUNCTION timeball.move_in() RETURNS bigint LANGUAGE plpgsql
SET enable_mergejoin = off
AS $function$
DECLARE
    c_gap constant bigint := 1000000000000;  -- more leases than any lane has had in between
    v_only constant boolean := true;  -- the key of the one row of home
    v_own xid8;
    v_first bigint;
    v_behind boolean;
    v_start pg_snapshot;
    v_moved bigint := 0;
    v_unwanted bigint[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'moving in needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    PERFORM 1 FROM timeball.home ORDER BY home.id FOR UPDATE;
    IF timeball.at_home() THEN
        RETURN NULL;
    END IF;
    v_own := pg_current_xact_id();
    UPDATE timeball.home
    SET moves = home.moves + 1, system = (SELECT system_identifier FROM pg_control_system()),
        timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
    WHERE home.id = v_only
    RETURNING home.moves * c_gap INTO v_first;
    PERFORM setval(sequence.oid::regclass, coalesce(pg_sequence_last_value(sequence.oid), 0)
        + CASE kind.seqtypid WHEN 'bigint'::regtype THEN 1000000000 ELSE 1000 END)
    FROM pg_class AS sequence
    JOIN pg_class AS lane ON lane.oid = 'timeball.lane'::regclass
        AND lane.relnamespace = sequence.relnamespace
    JOIN pg_sequence AS kind ON kind.seqrelid = sequence.oid;

    PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, lane.id)
    FROM (SELECT lane.id FROM timeball.lane ORDER BY lane.priority DESC, lane.id) AS lane;

    -- What a transaction of this server has written never exceeds its newest number.
    SELECT coalesce(bool_or(pg_snapshot_xmax(lease.cur) > pg_snapshot_xmax(pg_current_snapshot())
        OR entry.xid >= pg_snapshot_xmax(pg_current_snapshot())), false)
    INTO v_behind
    FROM timeball.lane
    LEFT JOIN LATERAL (
        SELECT lease.cur FROM timeball.lease
        WHERE lease.lane = lane.id ORDER BY lease.seq DESC LIMIT 1) AS lease ON true
    LEFT JOIN LATERAL (
        SELECT entry.xid FROM timeball.entry
        WHERE entry.lane = lane.id ORDER BY entry.xid DESC, entry.job_id DESC LIMIT 1
    ) AS entry ON true;

    IF v_behind THEN
        UPDATE timeball.home SET first_seq = v_first WHERE home.id = v_only;
        PERFORM timeball.expire(worker.id, NULL, NULL, NULL, 'expired')
        FROM (
            SELECT worker.id FROM timeball.worker WHERE worker.ended_at IS NULL ORDER BY worker.id
        ) AS worker;
        PERFORM timeball.share_graph();
        -- One statement, one snapshot: what it does not see lies in the window that it begins.
        WITH open AS MATERIALIZED (
            SELECT entry.*, EXISTS (
                -- Cancelled before anything was granted here: it was taken for one that runs.
                SELECT FROM timeball.event
                WHERE event.job_id = entry.job_id AND event.turn = entry.turn
                  AND event.kind = 'cancel_requested'
            ) AS unwanted
            FROM timeball.entry
            WHERE entry.xid <> v_own AND NOT EXISTS (
                SELECT FROM timeball.ended
                WHERE ended.job_id = entry.job_id AND ended.turn = entry.turn)
        ),
        gone AS (
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            SELECT open.job_id, open.turn, 'moved', 'another server'
            FROM open ORDER BY open.job_id, open.turn
        ),
        unwanted AS (
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            SELECT open.job_id, open.turn + 1, 'cancelled', 'requested'
            FROM open WHERE open.unwanted ORDER BY open.job_id
            RETURNING ended.job_id
        ),
        again AS (
            INSERT INTO timeball.entry (lane, job_id, turn, at, attempts, failures, crashes,
                delay_s, expires_at, at_once, lined_at)
            SELECT open.lane, open.job_id, open.turn + 1, open.at, coalesce(open.attempts, 0),
                coalesce(open.failures, 0), coalesce(open.crashes, 0), coalesce(open.delay_s, 0),
                open.expires_at, open.at_once, open.lined_at
            FROM open WHERE NOT open.unwanted ORDER BY open.job_id
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM again), (SELECT array_agg(job_id) FROM unwanted), format('%s:%s:%s',
            least(pg_snapshot_xmin(now.seen), v_own), v_own, (
                SELECT string_agg(unseen.x::text, ',' ORDER BY unseen.x)
                FROM (
                    SELECT x FROM pg_snapshot_xip(now.seen) AS x WHERE x < v_own
                    UNION ALL  -- those after its end, but before this one
                    SELECT x::text::xid8
                    FROM generate_series(pg_snapshot_xmax(now.seen)::text::bigint,
                        v_own::text::bigint - 1) AS x
                ) AS unseen (x)))::pg_snapshot
        INTO v_moved, v_unwanted, v_start
        FROM (SELECT pg_current_snapshot()) AS now (seen);
        PERFORM timeball.free_slots(v_unwanted), timeball.unlink(v_unwanted)
        WHERE v_unwanted IS NOT NULL;
    END IF;

    INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
    SELECT lane.id, v_first, coalesce(v_start, newest.prev, '1:1:'),
        coalesce(v_start, newest.cur, '1:1:'),
        CASE WHEN v_start IS NULL THEN coalesce(newest.pos_xid, '0') ELSE v_own END,
        CASE WHEN v_start IS NULL THEN coalesce(newest.pos_id, 0) ELSE 0 END, '{}', '{}'
    FROM timeball.lane
    LEFT JOIN LATERAL (
        SELECT lease.* FROM timeball.lease
        WHERE lease.lane = lane.id ORDER BY lease.seq DESC LIMIT 1) AS newest ON true;
    RETURN v_moved;
END
$function$;
