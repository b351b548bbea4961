-- Return the newest turns of a job, oldest first: when each lined up, was granted, began, ended.
WITH lined AS (
    SELECT entry.lane, entry.xid, entry.turn, entry.at, false AS direct FROM timeball.entry
    WHERE entry.job_id = %(job)s AND entry.attempts IS NOT NULL
    UNION ALL
    SELECT entry.lane, entry.xid, entry.turn, entry.at, true FROM timeball.job
    JOIN timeball.entry ON entry.lane = job.lane AND entry.xid = job.xid AND entry.job_id = job.id
    WHERE job.id = %(job)s AND entry.attempts IS NULL
), past AS (
    SELECT * FROM timeball.ended WHERE ended.job_id = %(job)s
), newest AS (
    SELECT coalesce(lined.turn, past.turn) AS n, lined.lane, lined.xid, lined.at AS lined_at,
        coalesce(lined.direct, false) AS direct,
        past.began_at, past.ran_s, past.at AS ended_at, past.event, past.reason, past.worker,
        past.error_type, past.error, past.result
    FROM lined FULL JOIN past ON past.turn = lined.turn
    ORDER BY 1 DESC LIMIT %(limit)s
)
SELECT newest.n, newest.lined_at, granted.at, coalesce(granted.worker, newest.worker),
    newest.began_at, newest.ran_s, newest.ended_at, newest.event, newest.reason,
    newest.error_type, newest.error, newest.result::text, newest.direct
FROM newest
LEFT JOIN LATERAL timeball.granted_by(newest.lane, newest.xid, %(job)s) AS granted ON true
ORDER BY newest.n;
