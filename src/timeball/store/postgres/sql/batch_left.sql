-- Return the jobs of a batch that have not ended, the newest first.
SELECT job.uuid FROM timeball.batch_jobs(timeball.batch_id(%(batch)s)) AS member
JOIN timeball.job ON job.id = member.job_id
WHERE member.state IN ('scheduled', 'waiting', 'pending', 'running')
ORDER BY job.id DESC;
