-- How many sessions have committed and are kept waiting until a standby has it.
SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep';
