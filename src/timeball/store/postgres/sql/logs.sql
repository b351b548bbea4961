-- Return the lines of a job, oldest first; one row of nulls where it has none, and no row where
-- there is no such job.
SELECT logged.turn, logged.at, logged.text
FROM timeball.job LEFT JOIN timeball.logged ON logged.job_id = job.id
WHERE job.uuid = %(uuid)s
ORDER BY logged.turn, logged.n;
