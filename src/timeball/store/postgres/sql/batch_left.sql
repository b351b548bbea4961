-- Return the batches in a batch that have not ended, and its jobs, with which of these each is; the
-- batches first, and the newest of each.
SELECT job.uuid, open.is_batch
FROM (
    SELECT held.job_id, true AS is_batch
    FROM unnest(timeball.batch_nodes(timeball.batch_id(%(batch)s))) AS node (id)
    JOIN timeball.held ON held.job_id = node.id
    UNION ALL
    SELECT member.job_id, false FROM timeball.batch_jobs(timeball.batch_id(%(batch)s)) AS member
    WHERE member.state IN ('scheduled', 'waiting', 'pending', 'running')
) AS open
JOIN timeball.job ON job.id = open.job_id
ORDER BY open.is_batch DESC, job.id DESC;
