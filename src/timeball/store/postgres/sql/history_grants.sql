-- Stream every granted turn, by job and turn.
SELECT granted.job_id, granted.turn, lease.worker, lease.lane, lease.seq,
    extract(epoch FROM lease.at)::double precision
FROM timeball.lease
CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
WHERE granted.job_id >= %(first)s
ORDER BY granted.job_id, granted.turn, lease.at;
