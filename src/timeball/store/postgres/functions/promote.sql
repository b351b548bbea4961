-- event: due (scheduled -> pending)
-- Move up to p_limit scheduled jobs that have fallen due to the back of their lanes, and
-- those that waited a second for a worker that knows their kind and now have one; then let
-- those in whose key has room, or who wait for a rate and can expect a permit: of the next 1,000
-- keys after p_after, in a circle. Returns how
-- many there were, the last key that was looked at, the seconds until the next job falls due or may
-- come from a line (null: there is none), the queues whose starts are limited, and whether those of
-- some kinds are.
--
-- The rows are locked in a materialised CTE: under a nested loop a LIMIT inside IN (...)
-- is evaluated again and again, and moves more.
CREATE OR REPLACE FUNCTION timeball.promote(
    p_limit integer, p_after text,
    OUT o_moved integer, OUT o_next_due_s double precision, OUT o_after text, OUT o_rated text[],
    OUT o_lined boolean
) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_ripe bigint[];
    v_leaving bigint[];
    v_keys text[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT held.job_id FROM timeball.held
        WHERE held.state = 'scheduled' AND held.run_at <= timeball.now()
        ORDER BY held.run_at, held.job_id
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ),
    -- From the kinds that are known to the jobs: there may be a million of an unknown one.
    known AS MATERIALIZED (
        SELECT waiting.job_id
        FROM (
            SELECT DISTINCT unnest(worker.kinds) AS kind FROM timeball.worker
            WHERE worker.ended_at IS NULL
              AND EXISTS (SELECT FROM timeball.held WHERE held.reason = 'no_worker')
        ) AS able
        CROSS JOIN LATERAL (
            SELECT held.job_id FROM timeball.held
            WHERE held.reason = 'no_worker' AND held.kind = able.kind
              AND held.at <= timeball.now() - interval '1 second'
            ORDER BY held.job_id
            LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS waiting
        LIMIT p_limit
    ),
    ripe AS (SELECT job_id FROM due UNION ALL SELECT job_id FROM known)
    SELECT array_agg(ripe.job_id) INTO v_ripe FROM ripe;
    o_moved := CASE WHEN v_ripe IS NULL THEN 0 ELSE timeball.line_up(v_ripe) END;
    IF EXISTS (SELECT FROM timeball.held WHERE held.line IS NOT NULL) THEN
        v_leaving := timeball.leave_lines(p_limit - coalesce(cardinality(v_ripe), 0));
        o_moved := o_moved + timeball.line_up(v_leaving);
        v_ripe := v_ripe || v_leaving;
    END IF;

    SELECT waiting.o_keys, waiting.o_last INTO v_keys, o_after
    FROM timeball.waiting_keys(p_after, 1000) AS waiting;
    IF v_keys IS NOT NULL OR v_ripe IS NOT NULL THEN
        v_keys := v_keys || array(
            SELECT DISTINCT held.key FROM timeball.held
            WHERE held.job_id = ANY (v_ripe) AND held.key IS NOT NULL);
        o_moved := o_moved + timeball.admit_keys(v_keys, p_limit);
    END IF;

    SELECT extract(epoch FROM held.run_at - timeball.now()) INTO o_next_due_s
    FROM timeball.held WHERE held.state = 'scheduled'
    ORDER BY held.run_at, held.job_id LIMIT 1;
    o_rated := array(
        SELECT limiter.name FROM timeball.limiter
        WHERE limiter.scope = 'queue' AND limiter.starts IS NOT NULL);
    o_lined := timeball.rated_kinds() <> '{}';
    IF EXISTS (SELECT FROM timeball.limiter WHERE limiter.starts IS NOT NULL) THEN
        o_next_due_s := least(o_next_due_s, timeball.next_opening());
    END IF;
END
$function$;
