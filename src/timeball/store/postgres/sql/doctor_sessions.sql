-- Return the sessions whose snapshot or transaction keeps dead rows from being taken away, and the
-- transactions that were prepared and never ended: the oldest first.
SELECT one.kind, one.name, one.owner, one.program, one.age_s
FROM (
    SELECT 'session' AS kind, activity.pid::text AS name, coalesce(activity.usename, '') AS owner,
        concat_ws(', ', nullif(activity.application_name, ''), activity.state) AS program,
        extract(epoch FROM clock_timestamp() - activity.xact_start)::double precision AS age_s
    FROM pg_stat_activity AS activity
    WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
      AND activity.backend_type = 'client backend' AND activity.xact_start IS NOT NULL
      AND (activity.backend_xmin IS NOT NULL OR activity.backend_xid IS NOT NULL)
    UNION ALL
    SELECT 'prepared', prepared.gid, prepared.owner, '',
        extract(epoch FROM clock_timestamp() - prepared.prepared)::double precision
    FROM pg_prepared_xacts AS prepared WHERE prepared.database = current_database()
) AS one
ORDER BY one.age_s DESC LIMIT %(most)s;
