-- The processes that a backend waits for.
SELECT pg_blocking_pids(%(pid)s);
