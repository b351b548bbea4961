-- The sessions of this database that listen, as far as that was the last thing they did.
SELECT activity.pid FROM pg_stat_activity AS activity
WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
  AND activity.state = 'idle' AND activity.query ~ '\mLISTEN\M';
