-- Return of the newest failures which kinds they are of, by what, how often, and when last.
-- Plan: a bounded range of ended_badly backwards; each job is looked up by its id.
SELECT job.kind, coalesce(past.error_type, past.reason, ''), count(*), max(past.at)
FROM (
    SELECT * FROM timeball.ended WHERE ended.event = 'failed'
    ORDER BY ended.job_id DESC LIMIT %(most)s
) AS past
CROSS JOIN LATERAL (SELECT job.kind FROM timeball.job WHERE job.id = past.job_id LIMIT 1) AS job
GROUP BY 1, 2
ORDER BY 3 DESC, 1, 2
LIMIT %(kinds)s;
