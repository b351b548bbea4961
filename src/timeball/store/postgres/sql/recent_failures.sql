-- Return of the newest jobs which kinds have failed, by what, how often, and when last.
-- Plan: a bounded range of job_pkey backwards, then of ended_pkey.
WITH newest AS MATERIALIZED (
    SELECT job.id, job.kind FROM timeball.job ORDER BY job.id DESC LIMIT %(most)s
)
SELECT newest.kind, coalesce(ended.error_type, ended.reason, ''), count(*), max(ended.at)
FROM newest
JOIN timeball.ended ON ended.job_id = newest.id AND ended.event = 'failed'
GROUP BY 1, 2
ORDER BY 3 DESC, 1, 2
LIMIT %(kinds)s;
