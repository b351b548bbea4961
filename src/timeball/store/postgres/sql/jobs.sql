-- Return a page of jobs, newest first.
-- Plan: job_pkey backwards, as far as the page goes. What has succeeded is told by one probe, before
-- the state of a job is made out.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    jobs.began_at, jobs.ended_at, jobs.worker,
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key
FROM timeball.jobs
WHERE jobs.id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  AND jobs.id >= coalesce(%(from_id)s::bigint, 0)
  AND (%(state)s::text IS NULL OR %(state)s NOT IN ('pending', 'succeeded')
    OR (%(state)s = 'succeeded') = (SELECT count(*) > 0 FROM timeball.ended
        WHERE ended.job_id = jobs.id AND ended.event = 'succeeded'))
  AND (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
  AND (%(kind)s::text IS NULL OR jobs.kind = %(kind)s)
  AND (%(state)s::text IS NULL OR jobs.state = %(state)s)
ORDER BY jobs.id DESC
LIMIT %(limit)s;
