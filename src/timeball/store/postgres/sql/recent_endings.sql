-- Return how those of the newest jobs stand that have ended: how many per state and minute ago.
-- Plan: a bounded range of job_pkey backwards, then one of ended_pkey, whatever is expected.
WITH first AS MATERIALIZED (
    SELECT min(newest.id) AS id
    FROM (SELECT job.id FROM timeball.job ORDER BY job.id DESC LIMIT %(most)s) AS newest
)
SELECT CASE past.event WHEN 'expired' THEN 'skipped' ELSE past.event END,
    floor(extract(epoch FROM timeball.now() - past.at) / 60)::bigint, count(*)
FROM first
CROSS JOIN LATERAL (
    SELECT * FROM timeball.ended WHERE ended.job_id >= first.id
    ORDER BY ended.job_id, ended.turn LIMIT 4 * %(most)s
) AS past
WHERE past.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
  AND NOT EXISTS (
    SELECT FROM timeball.event AS again
    WHERE again.job_id = past.job_id AND again.turn = past.turn AND again.kind = 'revived')
GROUP BY 1, 2;
