-- The process by which a standby receives what its primary has written.
SELECT pid FROM pg_stat_wal_receiver;
