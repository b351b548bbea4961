-- event: release, skip (waiting -> pending, scheduled, skipped, failed)
-- Link edges to parents that existed before; return how many, or null; see the function.
SELECT timeball.link(%(limit)s);
