-- Return those of some jobs that have ended for good and of which an edge is undecided, with how
-- they ended: gone, where the job was deleted.
CREATE OR REPLACE FUNCTION timeball.fates(p_jobs bigint[])
RETURNS TABLE (job_id bigint, event text) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT u.id, coalesce(last.event, 'gone')
FROM (SELECT DISTINCT parent.id FROM unnest(p_jobs) AS parent (id)) AS u
CROSS JOIN LATERAL (
    SELECT FROM timeball.dependency AS edge
    WHERE edge.parent = u.id AND edge.decided_at IS NULL LIMIT 1
) AS needed
LEFT JOIN LATERAL (
    SELECT ended.event, ended.turn FROM timeball.ended
    WHERE ended.job_id = u.id ORDER BY ended.turn DESC LIMIT 1
) AS last ON true
WHERE CASE
    WHEN last.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired') THEN (
        SELECT 1 FROM timeball.event
        WHERE event.job_id = u.id AND event.turn = last.turn AND event.kind = 'revived'
    ) IS NULL
    ELSE last.event IS NULL AND (SELECT 1 FROM timeball.job WHERE job.id = u.id) IS NULL
END;
$function$;
