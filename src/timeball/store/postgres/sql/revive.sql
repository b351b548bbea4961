-- event: revive (failed, cancelled, skipped -> pending)
-- Start ended jobs again; return what became of those that are known; see the function.
SELECT uuid, queue, answer FROM timeball.revive(%(uuids)s);
