-- event: revive (failed, cancelled, skipped -> pending)
-- Start ended jobs again and return, of each that is known, its queue and what became of it:
-- revived, refused, or clashed, where its unique key is another one's now. They go to the back
-- of their lanes, or wait for their keys; the counts against which their budgets are held begin
-- at nothing.
--
-- Locks the rows of jobs that have ended, in the order of their ids; what is decided is read by
-- a later statement, so that of two revivals the second finds the turn that the first has made.
-- Not those of the others: a key may be some caller's for as long as he likes, and who settles
-- must not wait for that.
CREATE OR REPLACE FUNCTION timeball.revive(p_uuids uuid[])
RETURNS TABLE (uuid uuid, queue text, answer text) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
#variable_conflict use_column
DECLARE
    v_locked bigint[];
    v_ripe bigint[];
    v_clashed bigint[];
    v_rated text[] := timeball.rated_kinds();
BEGIN
    PERFORM timeball.durable();
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'reviving needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    v_locked := array(
        SELECT job.id FROM timeball.job
        WHERE job.uuid = ANY (p_uuids) AND timeball.has_ended(job.id)
        ORDER BY job.id
        FOR NO KEY UPDATE);
    v_ripe := array(
        SELECT jobs.id FROM timeball.jobs
        WHERE jobs.id = ANY (v_locked) AND jobs.state IN ('failed', 'cancelled', 'skipped')
          AND jobs.kind NOT IN ('timeball.batch', 'timeball.callback')
          AND jobs.turn < 2147483646);
    v_clashed := timeball.retake_keys(v_ripe);
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT jobs.id, jobs.uuid, jobs.queue, jobs.turn, jobs.attempts,
            coalesce(moved.lane, job.lane) AS lane, job.kind, job.key,
            jobs.id = ANY (v_ripe) AND jobs.id <> ALL (v_clashed) AS ripe,
            CASE WHEN job.key IS NOT NULL THEN 'key'
                WHEN job.kind = ANY (v_rated) THEN 'rate' END AS reason
        FROM timeball.job
        -- One after the other: as a join, every job's state was made out to look for these.
        CROSS JOIN LATERAL (
            SELECT one.* FROM timeball.jobs AS one WHERE one.id = job.id OFFSET 0
        ) AS jobs
        LEFT JOIN timeball.moved ON moved.job_id = job.id
        WHERE job.uuid = ANY (p_uuids)
    ),
    entered AS (
        INSERT INTO timeball.entry (lane, job_id, turn, attempts, failures, crashes, delay_s)
        SELECT found.lane, found.id, found.turn + 1, found.attempts, 0, 0, 0
        FROM found WHERE found.ripe AND found.reason IS NULL ORDER BY found.id
    ),
    waiting AS (
        INSERT INTO timeball.held (job_id, turn, state, lane, reason, kind, key, attempts, line)
        SELECT found.id, found.turn + 1, 'pending', found.lane, found.reason, found.kind, found.key,
            found.attempts, CASE WHEN found.reason = 'rate' THEN 'kind:' || found.kind END
        FROM found WHERE found.ripe AND found.reason IS NOT NULL ORDER BY found.id
    ),
    noted AS (
        INSERT INTO timeball.event (kind, job_id, turn)
        SELECT 'revived', found.id, found.turn FROM found WHERE found.ripe ORDER BY found.id
    )
    SELECT found.uuid, found.queue, CASE
            WHEN found.ripe THEN 'revived'
            WHEN found.id = ANY (v_clashed) THEN 'clashed'
            ELSE 'refused'
        END
    FROM found;

    PERFORM timeball.admit_keys(array_agg(job.key), 1000)
    FROM timeball.job WHERE job.uuid = ANY (p_uuids) AND job.key IS NOT NULL
    HAVING count(*) > 0;
END
$function$;
