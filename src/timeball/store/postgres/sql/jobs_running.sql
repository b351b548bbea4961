-- Return a page of running jobs, newest first: of what live workers were granted and has not ended.
-- Plan: each worker's leases from the oldest with open turns on; each job is looked up by its id.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    jobs.began_at, jobs.ended_at, jobs.worker,
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key
FROM (
    SELECT DISTINCT turn.job_id FROM timeball.running_turns() AS turn
    WHERE turn.job_id < coalesce(%(before_id)s::bigint, 9223372036854775807)
      AND turn.job_id >= coalesce(%(from_id)s::bigint, 0)
    ORDER BY turn.job_id DESC
) AS found
CROSS JOIN LATERAL (SELECT * FROM timeball.jobs WHERE jobs.id = found.job_id LIMIT 1) AS jobs
WHERE (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
  AND (%(kind)s::text IS NULL OR jobs.kind = %(kind)s)
  AND jobs.state = %(state)s
ORDER BY found.job_id DESC
LIMIT %(limit)s;
