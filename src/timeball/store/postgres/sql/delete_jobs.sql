-- Delete ended jobs; return what became of those that are known; see the function.
SELECT uuid, answer FROM timeball.delete_jobs(%(uuids)s);
