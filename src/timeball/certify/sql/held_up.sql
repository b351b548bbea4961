-- How many backends wait for one.
SELECT count(*) FROM pg_stat_activity AS activity
WHERE %(pid)s = ANY (pg_blocking_pids(activity.pid));
