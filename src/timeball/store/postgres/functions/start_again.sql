-- event: revive (failed, cancelled, skipped -> pending, waiting)
-- Give ended jobs their next turn: those whose edges say so wait for their parents, the others line
-- up or wait for their keys; and batches wait. A part of `reopen`, which has locked their rows.
CREATE OR REPLACE FUNCTION timeball.start_again(p_jobs bigint[], p_batches bigint[])
RETURNS void LANGUAGE sql
SET enable_seqscan = off
AS $function$
WITH found AS MATERIALIZED (
    SELECT jobs.id, jobs.turn, jobs.attempts, coalesce(moved.lane, job.lane) AS lane, job.kind,
        job.key, needs.*,
        CASE WHEN job.kind = 'timeball.batch' THEN 'members'
            WHEN needs.edges > 0 AND timeball.sentence(needs.all_left, needs.one_left,
                needs.one_met, needs.lost, job.ruled_out) = 'wait' THEN 'parents'
            WHEN job.key IS NOT NULL THEN 'key'
        END AS reason
    FROM timeball.job
    CROSS JOIN LATERAL (
        SELECT one.* FROM timeball.jobs AS one WHERE one.id = job.id OFFSET 0
    ) AS jobs
    LEFT JOIN timeball.moved ON moved.job_id = job.id
    CROSS JOIN LATERAL (
        SELECT count(*)::integer AS edges,
            count(*) FILTER (
                WHERE edge.rule NOT LIKE 'one%' AND edge.decided_at IS NULL)::integer AS all_left,
            count(*) FILTER (
                WHERE edge.rule LIKE 'one%' AND edge.decided_at IS NULL)::integer AS one_left,
            coalesce(bool_or(edge.met) FILTER (WHERE edge.rule LIKE 'one%'), false)
                OR count(*) FILTER (WHERE edge.rule LIKE 'one%') = 0 AS one_met,
            coalesce(bool_or(NOT edge.met) FILTER (WHERE edge.rule NOT LIKE 'one%'), false) AS lost
        FROM timeball.dependency AS edge
        WHERE edge.child = job.id AND NOT edge.joins AND NOT edge.spawned
    ) AS needs
    WHERE job.id = ANY (p_jobs || p_batches)
),
entered AS (
    INSERT INTO timeball.entry (lane, job_id, turn, attempts, failures, crashes, delay_s)
    SELECT found.lane, found.id, found.turn + 1, found.attempts, 0, 0, 0
    FROM found WHERE found.reason IS NULL ORDER BY found.id
),
held AS (
    INSERT INTO timeball.held (job_id, turn, state, lane, reason, kind, key, attempts,
        all_left, one_left, one_met, lost)
    SELECT found.id, found.turn + 1, 'pending', found.lane, 'key', found.kind, found.key,
        found.attempts, NULL, NULL, NULL, NULL
    FROM found WHERE found.reason = 'key'
    UNION ALL
    SELECT found.id, found.turn + 1, 'waiting', found.lane, found.reason, found.kind, found.key,
        found.attempts, found.all_left, found.one_left, found.one_met, found.lost
    FROM found WHERE found.reason IN ('parents', 'members')
)
INSERT INTO timeball.event (kind, job_id, turn)
SELECT 'revived', found.id, found.turn FROM found ORDER BY found.id;
$function$;
