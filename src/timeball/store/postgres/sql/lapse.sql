-- event: lapse (scheduled, waiting, pending -> skipped)
-- Skip jobs whose deadline has passed before they began; see the function.
SELECT timeball.lapse(%(limit)s);
