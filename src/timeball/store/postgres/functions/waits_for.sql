-- Return the parents that a job waits for; p_again: and those that it would wait for once more where
-- its batch is tried again, which starts what has not succeeded. A part of `check_cycle`.
CREATE OR REPLACE FUNCTION timeball.waits_for(p_job bigint, p_again boolean)
RETURNS SETOF bigint LANGUAGE sql STABLE
AS $function$
SELECT edge.parent FROM timeball.dependency AS edge
WHERE edge.child = p_job AND CASE
    WHEN p_again AND NOT edge.spawned THEN edge.joins OR (
        SELECT 1 FROM timeball.ended
        WHERE ended.job_id = p_job AND ended.event = 'succeeded' LIMIT 1) IS NULL
    ELSE edge.decided_at IS NULL AND (
        SELECT held.state FROM timeball.held WHERE held.job_id = p_job) = 'waiting'
    END
$function$;
