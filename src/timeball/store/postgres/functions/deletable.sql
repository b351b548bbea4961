-- Lock the edges of ended jobs that are about to be deleted, and return those of the jobs whose
-- edges were all free. The others were cancelled before their parents ended, and somebody is just
-- deciding that: in an order of his own, so that he is not waited for.
CREATE OR REPLACE FUNCTION timeball.deletable(p_jobs bigint[]) RETURNS bigint[] LANGUAGE sql
SET enable_seqscan = off
AS $function$
WITH free AS MATERIALIZED (
    SELECT edge.child, edge.parent FROM timeball.dependency AS edge
    WHERE edge.child = ANY (p_jobs)
    ORDER BY edge.child, edge.parent
    FOR UPDATE SKIP LOCKED
)
SELECT array(
    SELECT u.id FROM unnest(p_jobs) AS u (id)
    EXCEPT
    SELECT busy.child FROM (
        SELECT edge.child, edge.parent FROM timeball.dependency AS edge
        WHERE edge.child = ANY (p_jobs)
        EXCEPT
        SELECT free.child, free.parent FROM free
    ) AS busy
    ORDER BY 1);
$function$;
