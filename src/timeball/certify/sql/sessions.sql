-- How many sessions of clients are in this database, but for those of the harness itself.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> ALL (%(own)s);
