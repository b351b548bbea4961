-- Return a page of jobs, newest first.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    jobs.began_at, jobs.ended_at, jobs.worker,
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key
FROM timeball.jobs
WHERE (%(before_id)s::bigint IS NULL OR jobs.id < %(before_id)s)
  AND (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
  AND (%(kind)s::text IS NULL OR jobs.kind = %(kind)s)
  AND (%(state)s::text IS NULL OR jobs.state = %(state)s)
ORDER BY jobs.id DESC
LIMIT %(limit)s;
