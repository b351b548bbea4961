-- Return every job that may change now that some parents have ended: their children, and those
-- of children that this may rule out. Iterates, however deep that goes.
CREATE OR REPLACE FUNCTION timeball.descendants(p_ended bigint[], p_events text[])
RETURNS bigint[] LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = on
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
    JOIN timeball.dependency AS edge ON edge.parent = touched.job_id
        AND edge.decided_at IS NULL AND edge.linked_at IS NOT NULL
    JOIN timeball.job ON job.id = edge.child
    WHERE touched.event IS NOT NULL
)
SELECT array(SELECT DISTINCT touched.job_id FROM touched ORDER BY touched.job_id);
$function$;
