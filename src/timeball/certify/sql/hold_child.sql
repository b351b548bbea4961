-- Hold the row by which a child waits for its parents, until the transaction ends.
SELECT held.job_id FROM timeball.held
JOIN timeball.job ON job.id = held.job_id
WHERE job.uuid = %(job)s FOR UPDATE OF held;
