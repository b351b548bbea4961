-- Return whether a job is in a batch that has not ended: until then it is kept.
CREATE OR REPLACE FUNCTION timeball.is_in_batch(p_job bigint) RETURNS boolean LANGUAGE sql STABLE
AS $function$
SELECT EXISTS (
    SELECT FROM timeball.dependency AS edge
    JOIN timeball.held ON held.job_id = edge.child
    WHERE edge.parent = p_job AND edge.rule = 'member' AND held.state = 'waiting'
);
$function$;
