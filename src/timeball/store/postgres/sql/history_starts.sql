-- Stream the starts that a rate's limit is about, by name of the limit: of turns that were granted
-- since its present rate holds.
SELECT named.name, rate.starts, rate.window_us, rate.burst, rate.spread,
    (extract(epoch FROM ended.began_at) * 1000000)::bigint
FROM timeball.lease
CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
JOIN timeball.ended ON ended.job_id = granted.job_id AND ended.turn = granted.turn
    AND ended.began_at IS NOT NULL
JOIN timeball.job ON job.id = granted.job_id
JOIN timeball.lane ON lane.id = lease.lane
CROSS JOIN LATERAL unnest(timeball.rates_of(lane.queue, job.kind, job.key)) AS named (name)
CROSS JOIN LATERAL timeball.rate_of(named.name) AS rate
WHERE lease.at >= (SELECT min(limiter.since) FROM timeball.limiter) AND lease.at >= rate.since
    AND lease.at >= coalesce(%(since)s, '-infinity'::timestamptz)
ORDER BY named.name COLLATE "C", ended.began_at;
