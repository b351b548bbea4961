-- Return how those of the newest jobs stand that have ended: how many per state and minute ago.
-- Plan: a bounded range of job_pkey backwards, then of ended_pkey.
WITH first AS MATERIALIZED (
    SELECT min(newest.id) AS id
    FROM (SELECT job.id FROM timeball.job ORDER BY job.id DESC LIMIT %(most)s) AS newest
)
SELECT CASE ended.event WHEN 'expired' THEN 'skipped' ELSE ended.event END,
    floor(extract(epoch FROM timeball.now() - ended.at) / 60)::bigint, count(*)
FROM first
JOIN timeball.ended ON ended.job_id >= first.id
LEFT JOIN timeball.event AS again
    ON again.job_id = ended.job_id AND again.turn = ended.turn AND again.kind = 'revived'
WHERE ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
  AND again.job_id IS NULL
GROUP BY 1, 2;
