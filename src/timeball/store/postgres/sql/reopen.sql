-- event: revive (failed, cancelled, skipped -> pending, waiting)
-- Start ended jobs of a batch again; return done, changed or busy. See the function.
SELECT timeball.reopen(%(jobs)s, %(turns)s);
