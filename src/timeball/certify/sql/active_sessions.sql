-- How many sessions of clients carry something out now, but for those of the harness.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
  AND state = 'active' AND pid <> ALL (%(own)s);
