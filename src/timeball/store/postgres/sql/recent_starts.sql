-- Return how many attempts of the newest jobs began how many seconds ago; and, as the row of null,
-- since when all of these jobs were submitted, where there are more than are looked at.
-- Plan: a bounded range of job_pkey backwards, then of ended_pkey.
WITH newest AS MATERIALIZED (
    SELECT job.id, job.created_at FROM timeball.job ORDER BY job.id DESC LIMIT %(most)s
)
SELECT floor(extract(epoch FROM timeball.now() - ended.began_at))::bigint, count(*)
FROM newest
JOIN timeball.ended ON ended.job_id = newest.id
WHERE ended.began_at > timeball.now() - make_interval(secs => %(seconds)s)
GROUP BY 1
UNION ALL
SELECT NULL, floor(extract(epoch FROM timeball.now() - min(newest.created_at)))::bigint
FROM newest HAVING count(*) >= %(most)s;
