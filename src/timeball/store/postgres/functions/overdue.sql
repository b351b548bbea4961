-- Return those of some jobs that ended longer ago than they are to be kept; null: for ever.
-- Not one with an entry that its lane's cursor has not passed: while claims come by there,
-- dead rows would have to be walked.
CREATE OR REPLACE FUNCTION timeball.overdue(
    p_jobs bigint[], p_succeeded_s double precision, p_others_s double precision
) RETURNS bigint[] LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT array(
    SELECT job.id
    FROM timeball.job
    CROSS JOIN LATERAL (
        SELECT ended.event, ended.at FROM timeball.ended
        WHERE ended.job_id = job.id ORDER BY ended.turn DESC LIMIT 1
    ) AS last
    WHERE job.id = ANY (p_jobs)
      AND last.at <= timeball.now() - make_interval(secs =>
          CASE last.event WHEN 'succeeded' THEN p_succeeded_s ELSE p_others_s END)
      AND timeball.has_ended(job.id)
      AND NOT EXISTS (
          SELECT FROM timeball.dependency AS edge
          WHERE edge.parent = job.id AND edge.decided_at IS NULL)
      AND NOT timeball.is_in_batch(job.id)
      AND NOT EXISTS (
          SELECT FROM timeball.entry
          WHERE entry.lane = job.lane AND entry.xid = job.xid AND entry.job_id = job.id
            AND NOT timeball.passed(entry.lane, entry.xid, job.id))
      AND NOT EXISTS (
          SELECT FROM timeball.entry
          WHERE entry.job_id = job.id AND entry.attempts IS NOT NULL
            AND NOT timeball.passed(entry.lane, entry.xid, job.id))
    ORDER BY job.id);
$function$;
