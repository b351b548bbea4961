-- Return which of some jobs have reached a terminal state.
SELECT job.uuid
FROM timeball.job
WHERE job.uuid = ANY (%(uuids)s)
  AND EXISTS (
      SELECT FROM timeball.ended
      WHERE ended.job_id = job.id
        AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
  );
