-- event: due (scheduled -> pending)
-- Move up to p_limit scheduled jobs that have fallen due to the back of their lanes, and
-- those that waited a second for a worker that knows their kind and now have one. Returns
-- how many, and the seconds until the next job falls due (null: none is scheduled).
--
-- The rows are locked in a materialised CTE: under a nested loop a LIMIT inside IN (...)
-- is evaluated again and again, and moves more.
CREATE OR REPLACE FUNCTION timeball.promote(
    p_limit integer, OUT o_moved integer, OUT o_next_due_s double precision
) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
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
    gone AS (
        DELETE FROM timeball.held
        USING (SELECT job_id FROM due UNION ALL SELECT job_id FROM known) AS ripe
        WHERE held.job_id = ripe.job_id
        RETURNING held.*
    ),
    moved AS (
        INSERT INTO timeball.entry
            (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at)
        SELECT lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at
        FROM gone ORDER BY job_id
        RETURNING 1
    )
    SELECT count(*) INTO o_moved FROM moved;

    SELECT extract(epoch FROM held.run_at - timeball.now()) INTO o_next_due_s
    FROM timeball.held WHERE held.state = 'scheduled'
    ORDER BY held.run_at, held.job_id LIMIT 1;
END
$function$;
