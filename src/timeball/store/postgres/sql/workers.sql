-- Return the workers that live and the newest of those that do not, with how many turns they have
-- of so many that are looked at in each lane.
-- What runs is looked for from a worker's oldest lease with open turns on, as `view_queues` does.
SELECT worker.id, worker.name, worker.kinds, worker.queues, worker.lease_s, worker.started_at,
    worker.beat_at, extract(epoch FROM timeball.now() - worker.beat_at)::double precision,
    worker.ended_at, worker.end_reason, coalesce(open.n, 0)
FROM (
    (SELECT * FROM timeball.worker WHERE worker.ended_at IS NULL ORDER BY worker.id LIMIT %(most)s)
    UNION ALL
    (SELECT * FROM timeball.worker WHERE worker.ended_at IS NOT NULL
     ORDER BY worker.id DESC LIMIT %(gone)s)
) AS worker
LEFT JOIN LATERAL (
    SELECT count(*) AS n
    FROM timeball.lane
    CROSS JOIN LATERAL (
        SELECT lease.floor FROM timeball.lease
        WHERE lease.worker = worker.id AND lease.lane = lane.id
        ORDER BY lease.seq DESC LIMIT 1
    ) AS newest
    CROSS JOIN LATERAL (
        SELECT array_agg(turn.job_id) AS job_ids, array_agg(turn.turn) AS turns
        FROM (
            SELECT granted.* FROM timeball.lease
            CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted
            WHERE lease.worker = worker.id AND lease.lane = lane.id AND lease.seq >= newest.floor
            ORDER BY lease.seq DESC LIMIT %(turns)s
        ) AS turn (job_id, turn)
    ) AS granted
    CROSS JOIN LATERAL (
        SELECT * FROM unnest(granted.job_ids, granted.turns)
        EXCEPT SELECT ended.job_id, ended.turn FROM timeball.ended
        WHERE ended.job_id = ANY (granted.job_ids)
    ) AS turn
    WHERE %(turns)s > 0
) AS open ON worker.ended_at IS NULL
ORDER BY worker.ended_at DESC NULLS FIRST, worker.id;
