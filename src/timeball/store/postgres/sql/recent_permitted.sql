-- Return what began lately under one limit on starts, by name of the limit: of turns that were
-- granted after `since`, and not all others that may be on record. No row: there is no such rate.
-- Plan: of each lane a bounded range of lease_pkey backwards, then of each turn in it one row of
-- ended_pkey and of job_pkey, whatever is expected.
WITH told AS MATERIALIZED (
    SELECT * FROM timeball.limiter
    WHERE limiter.scope = %(scope)s AND limiter.name = %(name)s AND limiter.starts IS NOT NULL
),
lanes AS MATERIALIZED (
    SELECT lane.id, greatest(%(most)s / 5 / count(*) OVER (), 5) AS most FROM timeball.lane
    WHERE %(scope)s <> 'queue' OR lane.queue = %(name)s
),
newest AS MATERIALIZED (
    SELECT lanes.id AS lane, lanes.most, leased.at, leased.job_ids, leased.turns,
        sum(cardinality(leased.job_ids)) OVER (ORDER BY leased.at DESC, lanes.id, leased.seq DESC)
            AS so_far
    FROM lanes CROSS JOIN LATERAL (
        SELECT lease.seq, lease.at, lease.job_ids, lease.turns FROM timeball.lease
        WHERE lease.lane = lanes.id ORDER BY lease.seq DESC LIMIT lanes.most
    ) AS leased
),
horizon AS MATERIALIZED (
    SELECT greatest(
        told.since,
        timeball.now() - make_interval(secs => %(seconds)s),
        (SELECT max(newest.at) FROM newest WHERE newest.so_far > %(most)s),
        (SELECT max(cut.at) FROM (
            SELECT min(newest.at) AS at FROM newest
            GROUP BY newest.lane, newest.most HAVING count(*) >= newest.most) AS cut)
    ) AS since
    FROM told
),
began AS MATERIALIZED (
    SELECT job.kind, job.key, ended.began_at
    FROM horizon
    JOIN newest ON newest.at > horizon.since
    CROSS JOIN LATERAL unnest(newest.job_ids, newest.turns) AS granted (job_id, turn)
    CROSS JOIN LATERAL (
        SELECT ended.began_at FROM timeball.ended
        WHERE ended.job_id = granted.job_id AND ended.turn = granted.turn LIMIT 1
    ) AS ended
    CROSS JOIN LATERAL (
        SELECT job.kind, job.key FROM timeball.job WHERE job.id = granted.job_id LIMIT 1
    ) AS job
    WHERE ended.began_at IS NOT NULL
),
keyed AS MATERIALIZED (
    SELECT form.key FROM (SELECT DISTINCT began.key FROM began WHERE %(scope)s = 'key') AS form
    CROSS JOIN LATERAL timeball.rate_of('key:' || form.key) AS rate
    WHERE rate.name = %(name)s
),
limited AS (
    SELECT %(scope)s || ':' || CASE WHEN %(scope)s = 'key' THEN began.key ELSE %(name)s END AS name,
        began.began_at
    FROM began
    WHERE CASE %(scope)s WHEN 'queue' THEN true WHEN 'kind' THEN began.kind = %(name)s
        ELSE began.key IN (SELECT keyed.key FROM keyed) END
)
SELECT horizon.since, told.starts, told.window_us, told.burst, told.spread, limited.name,
    (extract(epoch FROM limited.began_at) * 1000000)::bigint
FROM told CROSS JOIN horizon LEFT JOIN limited ON true
ORDER BY limited.name COLLATE "C", limited.began_at;
