-- Delete jobs with all that is known of them. Their rows and edges must be locked, and they must
-- have ended. What is left is how far deletions have come: `settle` looks whether what it was told
-- about a job up to there is about one that still exists.
--
-- An entry may still be ahead of its lane's cursor: a claim reads entries and endings in one
-- snapshot, so that it finds both of them or neither.
CREATE OR REPLACE FUNCTION timeball.erase(p_jobs bigint[]) RETURNS void LANGUAGE sql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DELETE FROM timeball.entry USING timeball.job
WHERE job.id = ANY (p_jobs)
  AND entry.lane = job.lane AND entry.xid = job.xid AND entry.job_id = job.id;
DELETE FROM timeball.entry WHERE entry.job_id = ANY (p_jobs) AND entry.attempts IS NOT NULL;
DELETE FROM timeball.ended WHERE ended.job_id = ANY (p_jobs);
DELETE FROM timeball.moved WHERE moved.job_id = ANY (p_jobs);
DELETE FROM timeball.progress WHERE progress.job_id = ANY (p_jobs);
DELETE FROM timeball.logged WHERE logged.job_id = ANY (p_jobs);
DELETE FROM timeball.event WHERE event.job_id = ANY (p_jobs);
-- Those of a cancelled child may be undecided yet, and whoever ends the parents at them.
DELETE FROM timeball.dependency USING (
    SELECT edge.child, edge.parent FROM timeball.dependency AS edge
    WHERE edge.child = ANY (p_jobs) ORDER BY edge.child, edge.parent
    FOR UPDATE
) AS gone
WHERE dependency.child = gone.child AND dependency.parent = gone.parent;
-- A key that somebody is just taking over is his.
DELETE FROM timeball.unique_key USING (
    SELECT taken.key FROM timeball.job JOIN timeball.unique_key AS taken ON taken.job = job.uuid
    WHERE job.id = ANY (p_jobs)
    ORDER BY taken.key
    FOR UPDATE OF taken SKIP LOCKED
) AS free
WHERE unique_key.key = free.key;
-- One that `lapse` is looking at is dropped there: it may be waiting for a lane.
DELETE FROM timeball.deadline USING (
    SELECT late.job_id FROM timeball.deadline AS late
    WHERE late.job_id = ANY (p_jobs) ORDER BY late.job_id
    FOR UPDATE SKIP LOCKED
) AS free
WHERE deadline.job_id = free.job_id;
DELETE FROM timeball.job WHERE job.id = ANY (p_jobs);
INSERT INTO timeball.deletion (upto, jobs)
SELECT max(gone.id), count(*) FROM unnest(p_jobs) AS gone (id) HAVING count(*) > 0
ON CONFLICT (id) DO UPDATE
SET upto = greatest(deletion.upto, excluded.upto), jobs = deletion.jobs + excluded.jobs;
$function$;
