-- What a backend is at, what it waits for, and the last statement that reached it.
SELECT state, coalesce(wait_event, ''), query  -- its beginning, where it is long
FROM pg_stat_activity WHERE pid = %(pid)s;
