-- Where the log of a primary ends.
SELECT pg_current_wal_flush_lsn()::text;
