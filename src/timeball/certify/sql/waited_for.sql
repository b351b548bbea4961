-- How many standbys are waited for.
SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync';
