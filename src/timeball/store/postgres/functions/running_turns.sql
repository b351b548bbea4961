-- Return the turns that are granted to workers not given up, and have not ended.
CREATE OR REPLACE FUNCTION timeball.running_turns()
RETURNS TABLE (job_id bigint, turn integer) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_sort = off  -- what has ended is taken away by hash, which is cheaper than in order
AS $function$
SELECT granted.job_id, granted.turn
FROM timeball.newest_leases() AS newest
-- A fence: else every lease that there is would be read first.
CROSS JOIN LATERAL (
    SELECT one.job_ids, one.turns FROM timeball.lease AS one
    WHERE one.worker = newest.worker AND one.lane = newest.lane AND one.seq >= newest.floor OFFSET 0
) AS lease
CROSS JOIN LATERAL (  -- one walk of the index for all of them: most have ended
    SELECT * FROM unnest(lease.job_ids, lease.turns)
    EXCEPT SELECT ended.job_id, ended.turn FROM timeball.ended
    WHERE ended.job_id = ANY (lease.job_ids)
) AS granted (job_id, turn)
WHERE EXISTS (SELECT FROM timeball.job WHERE job.id = granted.job_id);  -- else it was deleted
$function$;
