-- Return a page of jobs that failed, were cancelled or skipped, newest first.
-- Plan: ended_badly backwards, as far as the page goes; each job is looked up by its id: LIMIT 1 keeps it so.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    jobs.began_at, jobs.ended_at, jobs.worker,
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key
FROM (
    SELECT DISTINCT ended.job_id FROM timeball.ended
    WHERE ended.event IN ('failed', 'cancelled', 'skipped', 'expired')
      AND CASE ended.event WHEN 'expired' THEN 'skipped' ELSE ended.event END = %(state)s
      AND ended.job_id < coalesce(%(before_id)s::bigint, 9223372036854775807)
      AND ended.job_id >= coalesce(%(from_id)s::bigint, 0)
    ORDER BY ended.job_id DESC
) AS found
JOIN LATERAL (
    SELECT job.kind FROM timeball.job WHERE job.id = found.job_id LIMIT 1
) AS job ON %(kind)s::text IS NULL OR job.kind = %(kind)s
CROSS JOIN LATERAL (SELECT * FROM timeball.jobs WHERE jobs.id = found.job_id LIMIT 1) AS jobs
WHERE (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
  AND jobs.state = %(state)s
ORDER BY found.job_id DESC
LIMIT %(limit)s;
