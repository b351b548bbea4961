-- Return every job that may change now that some parents have ended: their children, and those
-- of children that this may rule out. Iterates, however deep that goes.
-- Plan: each step is a lateral index probe; as a join it was one of n * n.
CREATE OR REPLACE FUNCTION timeball.descendants(p_ended bigint[], p_events text[])
RETURNS bigint[] LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH RECURSIVE touched (job_id, event) AS (
    SELECT u.job_id, u.event FROM unnest(p_ended, p_events) AS u (job_id, event)
    UNION
    SELECT edge.child, CASE
            WHEN timeball.is_met(edge.rule, touched.event) THEN NULL
            WHEN job.ruled_out = 'run' THEN NULL
            WHEN job.ruled_out = 'fail' THEN 'failed'
            ELSE 'skipped'
        END
    FROM touched
    CROSS JOIN LATERAL (
        SELECT open.child, open.rule FROM timeball.dependency AS open
        WHERE open.parent = touched.job_id AND open.decided_at IS NULL
          AND open.linked_at IS NOT NULL AND NOT open.joins
        OFFSET 0
    ) AS edge
    CROSS JOIN LATERAL (
        SELECT child.ruled_out FROM timeball.job AS child WHERE child.id = edge.child OFFSET 0
    ) AS job
    WHERE touched.event IS NOT NULL
)
SELECT array(SELECT DISTINCT touched.job_id FROM touched ORDER BY touched.job_id);
$function$;
