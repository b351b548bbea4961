-- Return how many attempts of the newest jobs began how many seconds ago; and, as the row of null,
-- since when all of these jobs were submitted, where there are more than are looked at.
-- Plan: a bounded range of job_pkey backwards, then one of ended_pkey, whatever is expected.
WITH first AS MATERIALIZED (
    SELECT min(newest.id) AS id, min(newest.created_at) AS at, count(*) AS n
    FROM (
        SELECT job.id, job.created_at FROM timeball.job ORDER BY job.id DESC LIMIT %(most)s
    ) AS newest
)
SELECT floor(extract(epoch FROM timeball.now() - past.began_at))::bigint, count(*)
FROM first
CROSS JOIN LATERAL (
    SELECT ended.began_at FROM timeball.ended WHERE ended.job_id >= first.id
    ORDER BY ended.job_id, ended.turn LIMIT 4 * %(most)s
) AS past
WHERE past.began_at > timeball.now() - make_interval(secs => %(seconds)s)
GROUP BY 1
UNION ALL
SELECT NULL, floor(extract(epoch FROM timeball.now() - first.at))::bigint
FROM first WHERE first.n >= %(most)s;
