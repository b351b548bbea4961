-- Return which of some jobs have reached a terminal state, and were not revived since.
SELECT job.uuid FROM timeball.job
WHERE job.uuid = ANY (%(uuids)s) AND timeball.has_ended(job.id);
