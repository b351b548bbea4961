-- event: retry, snooze, release, expire (running -> scheduled, pending, cancelled)
-- Give each job whose turn has just ended without a terminal state its next turn, or end
-- it cancelled where that was requested. Called in the transaction that ended the turns,
-- as a later statement: what is read here must be newer than the lock.
--
-- Locks the job rows in the order of their ids; `cancel` takes the same lock before it
-- writes a request, so that no request is missed.
-- Plan: pinned to index probes; `settle` turns nested loops off for itself, and what it calls
-- would inherit that and read the whole of job.
CREATE OR REPLACE FUNCTION timeball.follow(
    p_job_ids bigint[], p_turns integer[], p_events text[], p_reasons text[],
    p_delays_s double precision[], p_began boolean[]
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_rated text[] := timeball.rated_kinds();
BEGIN
    PERFORM 1 FROM timeball.job
    WHERE job.id = ANY (p_job_ids)
    ORDER BY job.id
    FOR NO KEY UPDATE;

    WITH past AS MATERIALIZED (
        SELECT job.id AS job_id, done.turn + 1 AS turn, done.reason, done.delay_s, job.kind, job.key,
            coalesce(entry.lane, job.lane) AS lane,
            coalesce(entry.attempts, 0) + done.began::integer AS attempts,
            coalesce(entry.failures, 0) + (done.event = 'retried')::integer AS failures,
            coalesce(entry.crashes, 0) + (done.event = 'lost')::integer AS crashes,
            CASE WHEN NOT done.began THEN
                CASE WHEN entry.job_id IS NULL THEN job.expires_at ELSE entry.expires_at END
            END AS expires_at,
            CASE WHEN NOT done.began THEN entry.lined_at END AS lined_at,
            waits.line,
            (  -- no EXISTS: PostgreSQL 18 may read all requests into a hash table for one
                SELECT 1 FROM timeball.event
                WHERE event.job_id = job.id AND event.turn = done.turn
                  AND event.kind = 'cancel_requested'
            ) IS NOT NULL AS unwanted,
            CASE WHEN done.reason = 'no_worker' OR waits.line IS NOT NULL THEN 'pending'
                WHEN done.delay_s IS NOT NULL THEN 'scheduled'
                WHEN job.key IS NOT NULL THEN 'pending'
            END AS held
        FROM unnest(p_job_ids, p_turns, p_events, p_reasons, p_delays_s, p_began)
            AS done (job_id, turn, event, reason, delay_s, began)
        JOIN timeball.job ON job.id = done.job_id
        LEFT JOIN timeball.entry
            ON entry.job_id = job.id AND entry.turn = done.turn AND entry.attempts IS NOT NULL
        LEFT JOIN LATERAL (
            SELECT CASE WHEN done.reason = 'rate' AND NOT done.began
                    THEN timeball.rate_line(coalesce(entry.lane, job.lane), job.kind)
                WHEN done.delay_s IS NULL AND job.key IS NULL AND job.kind = ANY (v_rated)
                    AND done.reason IS DISTINCT FROM 'no_worker' THEN 'kind:' || job.kind END
        ) AS waits (line) ON true
    ),
    cancelled AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason)
        SELECT past.job_id, past.turn, 'cancelled', 'requested'
        FROM past WHERE past.unwanted ORDER BY past.job_id
    ),
    again AS (
        INSERT INTO timeball.entry
            (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, lined_at)
        SELECT past.lane, past.job_id, past.turn, past.attempts, past.failures, past.crashes, 0,
            past.expires_at, past.lined_at
        FROM past
        WHERE NOT past.unwanted AND past.held IS NULL
        ORDER BY past.job_id
    )
    INSERT INTO timeball.held
        (job_id, turn, state, lane, run_at, reason, kind, key, attempts, failures, crashes, delay_s,
            expires_at, at, line)
    SELECT past.job_id, past.turn, past.held, past.lane,
        CASE WHEN past.held = 'scheduled'
            -- A century at most: no clock can hold more, and one job must not stop the others.
            THEN timeball.clock() + make_interval(
                secs => least(greatest(past.delay_s, 0), 3155760000)) END,
        CASE WHEN past.line IS NOT NULL THEN 'rate'
            WHEN past.held = 'pending' AND past.reason IS DISTINCT FROM 'no_worker' THEN 'key'
            ELSE past.reason END,
        past.kind, past.key, past.attempts, past.failures, past.crashes,
        coalesce(past.delay_s, 0), past.expires_at, coalesce(past.lined_at, timeball.now()),
        past.line
    FROM past
    WHERE NOT past.unwanted AND past.held IS NOT NULL
    ORDER BY past.job_id;
END
$function$;
