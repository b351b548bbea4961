-- Return how many jobs are in each state, exactly and from one snapshot. O(jobs).
WITH newest AS MATERIALIZED (
    SELECT lane.id AS lane, lease.prev, lease.cur, lease.pos_xid, lease.pos_id
    FROM timeball.lane
    CROSS JOIN LATERAL (
        SELECT * FROM timeball.lease WHERE lease.lane = lane.id ORDER BY lease.seq DESC LIMIT 1
    ) AS lease
),
chosen AS MATERIALIZED (
    SELECT lane.id FROM timeball.lane WHERE %(queue)s::text IS NULL OR lane.queue = %(queue)s
)
SELECT state, count(*)
FROM (
    SELECT held.state, held.lane FROM timeball.held
    UNION ALL
    SELECT CASE
            WHEN pg_visible_in_snapshot(entry.xid, newest.prev)
                OR (pg_visible_in_snapshot(entry.xid, newest.cur)
                    AND (entry.xid, entry.job_id) <= (newest.pos_xid, newest.pos_id))
            THEN 'running' ELSE 'pending'
        END, entry.lane
    FROM timeball.entry
    LEFT JOIN newest ON newest.lane = entry.lane
    LEFT JOIN timeball.ended ON ended.job_id = entry.job_id AND ended.turn = entry.turn
    WHERE ended.job_id IS NULL
    UNION ALL
    SELECT CASE ended.event WHEN 'expired' THEN 'skipped' ELSE ended.event END,
        coalesce(moved.lane, job.lane)
    FROM timeball.ended
    JOIN timeball.job ON job.id = ended.job_id
    LEFT JOIN timeball.moved ON moved.job_id = ended.job_id
    LEFT JOIN timeball.event AS again
        ON again.job_id = ended.job_id AND again.turn = ended.turn AND again.kind = 'revived'
    WHERE ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
      AND again.job_id IS NULL
) AS every (state, lane)
WHERE every.lane IN (SELECT id FROM chosen)
GROUP BY state;
