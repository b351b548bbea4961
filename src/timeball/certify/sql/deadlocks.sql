-- How many deadlocks there were in this database.
SELECT deadlocks FROM pg_stat_database WHERE datname = current_database();
