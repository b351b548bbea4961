-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Keep a job from starting, or ask its attempt to stop; see the function.
SELECT timeball.cancel(%(uuid)s);
