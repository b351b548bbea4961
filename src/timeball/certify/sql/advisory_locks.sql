-- How many advisory locks a backend has: lanes and the graph.
SELECT count(*) FROM pg_locks WHERE pid = %(pid)s AND locktype = 'advisory';
