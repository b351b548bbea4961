-- Return the entry of a job's latest turn where that turn has not ended; no row otherwise.
CREATE OR REPLACE FUNCTION timeball.latest_entry(p_job_id bigint)
RETURNS TABLE (lane integer, xid xid8, turn integer, at timestamptz) LANGUAGE sql STABLE
AS $function$
SELECT entry.lane, entry.xid, entry.turn, entry.at
FROM (
    (SELECT e.lane, e.xid, e.turn, e.at, e.job_id
     FROM timeball.entry AS e WHERE e.job_id = p_job_id AND e.attempts IS NOT NULL
     ORDER BY e.turn DESC LIMIT 1)
    UNION ALL
    (SELECT e.lane, e.xid, e.turn, e.at, e.job_id
     FROM timeball.job
     JOIN timeball.entry AS e ON e.lane = job.lane AND e.xid = job.xid AND e.job_id = job.id
     WHERE job.id = p_job_id AND job.run_at IS NULL)
) AS entry
WHERE NOT EXISTS (
    SELECT FROM timeball.ended WHERE ended.job_id = entry.job_id AND ended.turn = entry.turn)
ORDER BY entry.turn DESC
LIMIT 1;
$function$;
