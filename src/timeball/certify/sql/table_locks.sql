-- Which locks of whole tables a session has.
SELECT DISTINCT locks.mode FROM pg_locks AS locks
WHERE locks.pid = %(pid)s AND locks.locktype = 'relation';
