-- Return those of some turns, which are about to be granted, whose job's deadline has passed. A
-- part of `claim`, called under the lane's lock, and only where some of them have a deadline.
CREATE OR REPLACE FUNCTION timeball.late_turns(p_jobs bigint[], p_turns integer[])
RETURNS TABLE (job_id bigint, turn integer) LANGUAGE sql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT given.job_id, given.turn
FROM unnest(p_jobs, p_turns) AS given (job_id, turn)
CROSS JOIN LATERAL (
    SELECT entry.expires_at FROM timeball.entry
    WHERE entry.job_id = given.job_id AND entry.turn = given.turn AND entry.attempts IS NOT NULL
    UNION ALL
    SELECT entry.expires_at
    FROM timeball.job
    JOIN timeball.entry ON entry.lane = job.lane AND entry.xid = job.xid
        AND entry.job_id = job.id AND entry.turn = given.turn AND entry.attempts IS NULL
    WHERE job.id = given.job_id
) AS entry
WHERE entry.expires_at <= timeball.clock()
ORDER BY given.job_id;
$function$;
