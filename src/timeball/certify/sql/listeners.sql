-- The sessions that listen for notifications: their last statement is that one, or their ping.
SELECT activity.pid FROM pg_stat_activity AS activity
WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
  AND (activity.query LIKE '%LISTEN timeball_wake%' OR activity.query LIKE '%one round trip%');
