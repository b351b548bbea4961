-- Stream the starts that a rate's limit is about, by name of the limit: of turns that were granted
-- since its present rate holds.
-- Which limits a start is under is asked once for each queue, kind and key, not for each start.
WITH started AS MATERIALIZED (
    SELECT lease.at, ended.began_at, lane.queue, job.kind, coalesce(job.key, '') AS key
    FROM timeball.lease
    CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
    JOIN timeball.ended ON ended.job_id = granted.job_id AND ended.turn = granted.turn
        AND ended.began_at IS NOT NULL
    JOIN timeball.job ON job.id = granted.job_id
    JOIN timeball.lane ON lane.id = lease.lane
    WHERE lease.at >= (SELECT min(limiter.since) FROM timeball.limiter)
      AND lease.at >= coalesce(%(since)s, '-infinity'::timestamptz)
),
limited AS MATERIALIZED (
    SELECT form.*, named.name, rate.starts, rate.window_us, rate.burst, rate.spread, rate.since
    FROM (SELECT DISTINCT started.queue, started.kind, started.key FROM started) AS form
    CROSS JOIN LATERAL unnest(
        timeball.rates_of(form.queue, form.kind, nullif(form.key, ''))) AS named (name)
    CROSS JOIN LATERAL timeball.rate_of(named.name) AS rate
)
SELECT limited.name, limited.starts, limited.window_us, limited.burst, limited.spread,
    (extract(epoch FROM started.began_at) * 1000000)::bigint
FROM started JOIN limited USING (queue, kind, key)
WHERE started.at >= limited.since
ORDER BY limited.name COLLATE "C", started.began_at;
