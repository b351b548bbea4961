-- Return one job with its state, or no row. For a running job also who runs it, since when.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    coalesce(owner.at, jobs.began_at), jobs.ended_at, coalesce(owner.worker, jobs.worker),
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key,
    progress.done, progress.total, progress.note, progress.turn, progress.at
FROM timeball.jobs
LEFT JOIN timeball.progress ON progress.job_id = jobs.id
LEFT JOIN LATERAL (
    SELECT granted.worker, granted.at
    FROM timeball.latest_entry(jobs.id) AS entry
    CROSS JOIN LATERAL timeball.granted_by(entry.lane, entry.xid, jobs.id) AS granted
    WHERE jobs.state = 'running'
) AS owner ON true
WHERE jobs.uuid = %(uuid)s;
