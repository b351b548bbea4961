-- Return the jobs of a batch and of those in it, each once, with their states: gone, where one was
-- deleted that had not succeeded.
--
-- What has succeeded is known from its edge, and that is final; a linked edge that is undecided
-- says that its job has not ended. So what is read of each job is little, in whatever order the
-- jobs come: those held, those granted to some worker, and the last ending of the others.
-- Plan: nested loops are off, since the join with what runs would become one of n * n; what is
-- looked up job by job is lateral, which that setting leaves alone.
CREATE OR REPLACE FUNCTION timeball.batch_jobs(p_batch bigint)
RETURNS TABLE (job_id bigint, state text) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = off
SET enable_mergejoin = off
AS $function$
WITH member AS MATERIALIZED (
    SELECT edge.parent AS id, bool_or(edge.met) AS met,
        bool_and(edge.decided_at IS NULL AND edge.linked_at IS NOT NULL) AS open
    FROM timeball.dependency AS edge
    WHERE edge.child = ANY (timeball.batch_nodes(p_batch)) AND edge.rule = 'member'
      AND edge.parent NOT IN (SELECT u.id FROM unnest(timeball.batch_nodes(p_batch)) AS u (id))
    GROUP BY edge.parent
)
SELECT member.id, CASE
        WHEN member.met THEN 'succeeded'
        WHEN held.job_id IS NOT NULL THEN held.state
        WHEN running.job_id IS NOT NULL THEN 'running'
        WHEN member.open THEN 'pending'
        ELSE (
            SELECT CASE
                WHEN job.id IS NULL THEN 'gone'
                WHEN last.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
                    AND NOT EXISTS (
                        SELECT FROM timeball.event
                        WHERE event.job_id = member.id AND event.turn = last.turn
                          AND event.kind = 'revived')
                    THEN CASE last.event WHEN 'expired' THEN 'skipped' ELSE last.event END
                ELSE 'pending'
            END
            FROM (SELECT) AS one
            LEFT JOIN timeball.job ON job.id = member.id
            LEFT JOIN LATERAL (
                SELECT ended.event, ended.turn FROM timeball.ended
                WHERE ended.job_id = member.id ORDER BY ended.turn DESC LIMIT 1
            ) AS last ON true)
    END
FROM member
LEFT JOIN LATERAL (
    SELECT one.job_id, one.state FROM timeball.held AS one WHERE one.job_id = member.id OFFSET 0
) AS held ON true
LEFT JOIN (SELECT DISTINCT turn.job_id FROM timeball.running_turns() AS turn) AS running
    ON running.job_id = member.id;
$function$;
