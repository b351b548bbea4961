-- Who was granted which turns of a job, and by which lease.
SELECT lease.worker, lease.lane, lease.seq, job.id, granted.turn
FROM timeball.job
JOIN timeball.lease ON job.id = ANY (lease.job_ids)
CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
WHERE job.uuid = %(job)s AND granted.job_id = job.id
ORDER BY lease.lane, lease.seq;
