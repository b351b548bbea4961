-- Return the turns of one lease with what is needed to carry them out. No lock is held.
SELECT * FROM timeball.lease_turns(%(lane)s, %(seq)s, %(worker)s);
