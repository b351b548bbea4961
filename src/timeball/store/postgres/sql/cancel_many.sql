-- event: cancel (scheduled, waiting, pending -> cancelled)
-- Keep jobs from starting of which that can be said at once; return which. See the function.
SELECT timeball.cancel_many(%(uuids)s);
