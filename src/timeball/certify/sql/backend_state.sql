-- What a backend is at, and what it waits for.
SELECT state, coalesce(wait_event, ''), xact_start IS NOT NULL
FROM pg_stat_activity WHERE pid = %(pid)s;
