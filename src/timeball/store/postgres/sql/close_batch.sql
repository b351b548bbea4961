-- event: join, release, skip
--   (waiting -> succeeded, failed, cancelled, skipped, pending, scheduled)
-- Let an open batch end with the last of its jobs; return whether it was open. See the function.
SELECT timeball.close_batch(%(batch)s, %(stop)s);
