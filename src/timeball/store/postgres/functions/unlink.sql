-- Leave what the end of some jobs means for their children to `link`, which looks at the edges
-- again. For those who end jobs in passing: while they hold a lane, or somebody's transaction.
CREATE OR REPLACE FUNCTION timeball.unlink(p_jobs bigint[]) RETURNS void LANGUAGE sql
SET enable_seqscan = off
AS $function$
UPDATE timeball.dependency AS edge SET linked_at = NULL
WHERE edge.parent = ANY (p_jobs) AND edge.decided_at IS NULL;
$function$;
