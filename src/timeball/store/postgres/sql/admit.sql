-- Let queued runs start whose earlier runs have ended; see the function.
SELECT timeball.admit(%(limit)s);
