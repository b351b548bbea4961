-- Return those of some jobs that have ended for good and of which an edge is undecided, with how
-- they ended: gone, where the job was deleted.
CREATE OR REPLACE FUNCTION timeball.fates(p_jobs bigint[])
RETURNS TABLE (job_id bigint, event text) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT u.id, CASE WHEN job.id IS NULL THEN 'gone' ELSE last.event END
FROM (SELECT DISTINCT parent.id FROM unnest(p_jobs) AS parent (id)) AS u
LEFT JOIN timeball.job ON job.id = u.id
LEFT JOIN LATERAL (
    SELECT ended.event, ended.turn FROM timeball.ended
    WHERE ended.job_id = u.id ORDER BY ended.turn DESC LIMIT 1
) AS last ON true
WHERE EXISTS (
        SELECT FROM timeball.dependency AS edge
        WHERE edge.parent = u.id AND edge.decided_at IS NULL)
  AND (job.id IS NULL
      OR last.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
          AND NOT EXISTS (
              SELECT FROM timeball.event
              WHERE event.job_id = u.id AND event.turn = last.turn AND event.kind = 'revived'));
$function$;
