-- Return one job with its state, or no row. For a running job also who runs it, since when.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    coalesce(owner.at, jobs.began_at), jobs.ended_at, coalesce(owner.worker, jobs.worker),
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text
FROM timeball.jobs
LEFT JOIN LATERAL (
    SELECT lease.worker, lease.at
    FROM timeball.lease JOIN timeball.job ON job.id = jobs.id
    WHERE lease.lane = job.lane AND jobs.id = ANY (lease.job_ids)
    ORDER BY lease.seq DESC LIMIT 1
) AS owner ON jobs.state = 'running'
WHERE jobs.uuid = %(uuid)s;
