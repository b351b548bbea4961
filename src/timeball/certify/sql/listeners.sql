-- The sessions of this database that listen, as far as that was the last thing they did; of our own
-- also those that have made a round trip since, for nothing was heard.
SELECT activity.pid FROM pg_stat_activity AS activity
WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
  AND activity.state = 'idle' AND activity.query ~ '\mLISTEN\M|Make one round trip';
