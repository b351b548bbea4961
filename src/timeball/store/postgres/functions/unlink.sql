-- Leave what the end of some jobs means for their children to `link`, which looks at the edges
-- again. For those who end jobs in passing: while they hold a lane, or somebody's transaction.
CREATE OR REPLACE FUNCTION timeball.unlink(p_jobs bigint[]) RETURNS void LANGUAGE sql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
UPDATE timeball.dependency AS edge SET linked_at = NULL
FROM (
    SELECT open.child, open.parent FROM timeball.dependency AS open
    WHERE open.parent = ANY (p_jobs) AND open.decided_at IS NULL
    ORDER BY open.child, open.parent
    FOR NO KEY UPDATE
) AS found
WHERE edge.child = found.child AND edge.parent = found.parent;
$function$;
