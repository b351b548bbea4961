-- In which modes a backend has locked relations.
SELECT DISTINCT mode FROM pg_locks WHERE pid = %(pid)s AND locktype = 'relation' ORDER BY mode;
