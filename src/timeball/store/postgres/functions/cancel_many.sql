-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Keep those of some jobs from starting of which that can be said at once, and return which they
-- are. The others, which run or are in other hands or have ended, are for `cancel`.
--
-- Each lane in the order of a claim, under its lock, and then held rows that are free, as in `lapse`.
-- What that means for children is decided in the same commit, unless one of their rows is in other
-- hands: to wait for it here would be out of the order of locks, so then `link` decides.
CREATE OR REPLACE FUNCTION timeball.cancel_many(p_uuids uuid[]) RETURNS uuid[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_jobs bigint[];
    v_some bigint[];
    v_ended bigint[] := '{}';
    v_keys text[];
    v_lane integer;
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed'
        OR pg_current_xact_id_if_assigned() IS NOT NULL
    THEN
        RAISE EXCEPTION 'a cancel runs alone in a READ COMMITTED transaction'
            USING ERRCODE = 'TB002';
    END IF;
    v_jobs := array(
        SELECT job.id FROM timeball.job
        WHERE job.uuid = ANY (p_uuids) AND job.kind <> 'timeball.batch' ORDER BY job.id);
    PERFORM timeball.share_graph();
    FOR v_lane IN
        SELECT lane.id FROM timeball.lane
        WHERE lane.id IN (
            SELECT entry.lane FROM unnest(v_jobs) AS job (id)
            CROSS JOIN LATERAL timeball.latest_entry(job.id) AS entry)
        ORDER BY lane.priority DESC, lane.id
    LOOP
        PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);
        WITH written AS (
            INSERT INTO timeball.ended (job_id, turn, event, reason)
            SELECT job.id, latest.turn, 'cancelled', 'requested'
            FROM unnest(v_jobs) AS job (id)
            CROSS JOIN LATERAL timeball.latest_entry(job.id) AS latest
            WHERE latest.lane = v_lane AND NOT timeball.passed(latest.lane, latest.xid, job.id)
            ORDER BY job.id
            ON CONFLICT DO NOTHING
            RETURNING ended.job_id
        )
        SELECT array_agg(written.job_id) INTO v_some FROM written;
        v_ended := v_ended || v_some;
        -- The decision takes a place in the lane's order, like a claim.
        INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
        SELECT lane, seq + 1, prev, cur, pos_xid, pos_id, '{}', '{}'
        FROM (
            SELECT * FROM timeball.lease WHERE lease.lane = v_lane ORDER BY lease.seq DESC LIMIT 1
        ) AS newest
        WHERE v_some IS NOT NULL;
    END LOOP;

    WITH free AS MATERIALIZED (
        SELECT held.job_id FROM timeball.held WHERE held.job_id = ANY (v_jobs)
        ORDER BY held.job_id
        FOR UPDATE SKIP LOCKED
    ),
    gone AS (
        DELETE FROM timeball.held USING free WHERE held.job_id = free.job_id
        RETURNING held.job_id, held.turn
    ),
    written AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason)
        SELECT gone.job_id, gone.turn, 'cancelled', 'requested' FROM gone ORDER BY gone.job_id
        RETURNING ended.job_id
    )
    SELECT v_ended || array_agg(written.job_id) INTO v_ended FROM written;
    IF v_ended = '{}' THEN
        RETURN '{}';
    END IF;

    v_keys := timeball.free_slots(v_ended);
    IF timeball.lock_free(timeball.descendants(
        v_ended, array_fill('cancelled'::text, ARRAY[cardinality(v_ended)])))
    THEN
        v_keys := v_keys || timeball.tell_children(v_ended);
    ELSE
        PERFORM timeball.unlink(v_ended);
    END IF;
    v_keys := v_keys || array(
        SELECT DISTINCT job.key FROM timeball.job
        WHERE job.id = ANY (v_ended) AND job.key IS NOT NULL);
    PERFORM timeball.admit_keys(v_keys, 1000) WHERE v_keys <> '{}';
    RETURN array(SELECT job.uuid FROM timeball.job WHERE job.id = ANY (v_ended));
END
$function$;
