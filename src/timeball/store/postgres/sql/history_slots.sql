-- Stream who counted against which limit, from when to when, in that order.
SELECT * FROM (
    SELECT 'key' AS scope, job.key AS name, extract(epoch FROM entry.at)::double precision AS at,
        extract(epoch FROM ended.at)::double precision AS until, job.id, entry.at_once
    FROM timeball.job
    JOIN timeball.entry ON entry.job_id = job.id AND entry.attempts IS NOT NULL
    LEFT JOIN timeball.ended ON ended.job_id = job.id AND ended.turn = entry.turn
    WHERE job.key IS NOT NULL
    UNION ALL
    SELECT 'queue', lane.queue, extract(epoch FROM lease.at)::double precision,
        extract(epoch FROM ended.at)::double precision, job.id, lease.at_once
    FROM timeball.lease
    JOIN timeball.lane ON lane.id = lease.lane
    CROSS JOIN LATERAL unnest(lease.job_ids, lease.turns) AS granted (job_id, turn)
    JOIN timeball.job ON job.id = granted.job_id
    LEFT JOIN timeball.ended ON ended.job_id = job.id AND ended.turn = granted.turn
    WHERE lease.at_once IS NOT NULL
) AS spans
WHERE %(since)s::timestamptz IS NULL OR spans.until IS NULL
    OR spans.until >= extract(epoch FROM %(since)s::timestamptz)
ORDER BY scope, name, at;
