-- Have a job that waits for its next turn be one that was tried so often.
UPDATE timeball.held SET attempts = %(attempts)s
WHERE held.job_id = (SELECT job.id FROM timeball.job WHERE job.uuid = %(job)s);
