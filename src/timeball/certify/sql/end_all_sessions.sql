-- End the sessions of clients in this database, but for some; return how many.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> ALL (%(own)s);
