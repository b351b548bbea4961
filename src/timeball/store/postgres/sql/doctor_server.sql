-- Return what a doctor asks the server itself: one row.
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
    current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('autovacuum'),
    current_setting('max_connections')::integer, pg_is_in_recovery(),
    (SELECT sum(base.numbackends)::integer FROM pg_stat_database AS base),
    pg_has_role('pg_read_all_stats', 'USAGE'), pg_backend_pid();
