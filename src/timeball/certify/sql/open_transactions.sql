-- The sessions of clients that stand still within a transaction, but for those of the harness.
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> ALL (%(own)s);
