-- Return a batch and all batches in it, however deep.
-- Plan: members are met in the order of their numbers, and so are batches: a merge of two indexes.
CREATE OR REPLACE FUNCTION timeball.batch_nodes(p_batch bigint) RETURNS bigint[] LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = off
AS $function$
WITH RECURSIVE node (id) AS (
    SELECT p_batch
    UNION
    SELECT job.id FROM node
    JOIN timeball.dependency AS edge ON edge.child = node.id AND edge.rule = 'member'
    JOIN timeball.job ON job.id = edge.parent AND job.kind = 'timeball.batch'
)
SELECT array(SELECT node.id FROM node ORDER BY node.id);
$function$;
