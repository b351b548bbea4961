-- How many connections a standby has to its primary.
SELECT count(*) FROM pg_stat_wal_receiver;
