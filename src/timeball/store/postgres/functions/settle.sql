-- event: succeed, retry, fail, snooze, release, cancel, expire
--   (running -> succeeded, failed, cancelled, scheduled, pending)
-- Record how turns ended and return what became of each, in order: accepted, already, stale.
-- One that its worker calls lost has failed where `crashed` says so.
--
-- Accepted iff the lease that the row names is this worker's and contains the turn, and the
-- turn has not ended: the key of `ended` is the fence. Stale rows are recorded as events.
-- Plan: nested loops are off, since the join of two unnested arrays would become one of
-- n * n; the lease itself is a lateral index probe, which that setting leaves alone.
CREATE OR REPLACE FUNCTION timeball.settle(
    p_worker bigint, p_lanes integer[], p_seqs bigint[], p_job_ids bigint[], p_turns integer[],
    p_events text[], p_reasons text[], p_delays_s double precision[],
    p_began double precision[], p_ran_s double precision[], p_results text[],
    p_error_types text[], p_errors text[]
) RETURNS text[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_nestloop = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $function$
DECLARE
    v_new bigint[];
    v_new_turns integer[];
    v_verdicts text[];
    v_limited boolean;
    v_parents boolean;
    v_keys text[];
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'settling needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;

    PERFORM pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);
    IF 'lost' = ANY (p_events) THEN
        SELECT crashed.events, crashed.reasons INTO p_events, p_reasons
        FROM timeball.crashed(p_job_ids, p_turns, p_events, p_reasons) AS crashed;
    END IF;

    WITH given AS MATERIALIZED (
        SELECT DISTINCT ON (job_id, turn, lane, seq) *
        FROM unnest(p_lanes, p_seqs, p_job_ids, p_turns, p_events, p_reasons, p_began, p_ran_s,
            p_results, p_error_types, p_errors) WITH ORDINALITY
            AS u (lane, seq, job_id, turn, event, reason, began, ran_s, result, error_type, error, n)
        ORDER BY job_id, turn, lane, seq, n
    ),
    granted AS MATERIALIZED (
        SELECT pair.lane, pair.seq, granted.job_id, granted.turn
        FROM (SELECT DISTINCT given.lane, given.seq FROM given) AS pair
        CROSS JOIN LATERAL (
            SELECT lease.job_ids, lease.turns FROM timeball.lease
            WHERE lease.lane = pair.lane AND lease.seq = pair.seq AND lease.worker = p_worker
            OFFSET 0
        ) AS lease
        CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
    ),
    written AS (
        INSERT INTO timeball.ended
            (job_id, turn, event, reason, began_at, ran_s, worker, result, error_type, error)
        SELECT given.job_id, given.turn, given.event, given.reason, to_timestamp(given.began),
            given.ran_s, p_worker, given.result::jsonb, given.error_type, given.error
        FROM given JOIN granted USING (lane, seq, job_id, turn)
        ORDER BY given.job_id, given.turn
        ON CONFLICT (job_id, turn) DO NOTHING
        RETURNING ended.job_id, ended.turn
    )
    SELECT coalesce(array_agg(written.job_id), '{}'), coalesce(array_agg(written.turn), '{}')
    INTO v_new, v_new_turns FROM written;

    -- A turn of a job that was deleted has no ending any more for the insert to meet.
    IF EXISTS (SELECT FROM timeball.deletion WHERE deletion.upto >= ANY (v_new)) THEN
        SELECT * INTO v_new, v_new_turns FROM timeball.disown(v_new, v_new_turns);
    END IF;

    -- One look for all, however many they are: few jobs have children.
    v_parents := EXISTS (
        SELECT FROM timeball.dependency AS edge
        WHERE edge.decided_at IS NULL
          AND edge.parent BETWEEN (SELECT min(u.id) FROM unnest(v_new) AS u (id))
              AND (SELECT max(u.id) FROM unnest(v_new) AS u (id)));
    v_limited := EXISTS (SELECT FROM timeball.slot);
    IF cardinality(v_new) = cardinality(p_job_ids)
        AND p_events <@ '{succeeded,failed,cancelled}'::text[]
    THEN
        IF v_parents THEN
            v_keys := timeball.tell_children(v_new);
        END IF;
        IF v_limited OR v_keys IS NOT NULL THEN
            PERFORM timeball.admit_keys(v_keys || timeball.free_slots(v_new), 1000);
        END IF;
        RETURN array_fill('accepted'::text, ARRAY[cardinality(p_job_ids)]);
    END IF;

    v_verdicts := timeball.verdicts(
        p_worker, p_lanes, p_seqs, p_job_ids, p_turns, p_events, p_reasons, v_new, v_new_turns);
    PERFORM timeball.follow(
        array_agg(u.job_id), array_agg(u.turn), array_agg(u.event), array_agg(u.reason),
        array_agg(CASE WHEN u.event IN ('retried', 'snoozed') THEN u.delay_s END),
        array_agg(u.began IS NOT NULL))
    FROM unnest(p_job_ids, p_turns, p_events, p_reasons, p_delays_s, p_began, v_verdicts)
        AS u (job_id, turn, event, reason, delay_s, began, verdict)
    WHERE u.verdict = 'accepted' AND u.event IN ('retried', 'snoozed', 'released', 'lost')
    HAVING count(*) > 0;
    IF v_parents THEN
        v_keys := timeball.tell_children(v_new);
    END IF;
    IF v_limited OR v_keys IS NOT NULL THEN
        PERFORM timeball.admit_keys(v_keys || timeball.free_slots(v_new), 1000);
    END IF;
    RETURN v_verdicts;
END
$function$;
