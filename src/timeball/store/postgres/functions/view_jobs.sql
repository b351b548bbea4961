-- One row per job with its state, for people with psql and for the readers of this package.
-- The state is that of the highest turn: held, or an entry that has not ended (running where
-- the lane's cursor has passed it), or the last ending.
CREATE OR REPLACE VIEW timeball.jobs AS
SELECT job.id, job.uuid, job.kind, lane.queue, lane.priority,
    CASE
        WHEN held.job_id IS NOT NULL THEN held.state
        WHEN entry.turn IS NOT NULL THEN
            CASE WHEN timeball.passed(entry.lane, entry.xid, job.id) THEN 'running' ELSE 'pending' END
        WHEN last.event = 'expired' THEN 'skipped'
        ELSE last.event
    END AS state,
    coalesce(held.turn, entry.turn, last.turn) AS turn,
    past.attempts, past.failures, past.crashes,
    job.max_retries, job.created_at, held.run_at, last.began_at,
    CASE WHEN held.job_id IS NULL AND entry.turn IS NULL THEN last.at END AS ended_at,
    last.worker, CASE
        WHEN queue.paused_at IS NOT NULL AND (held.state = 'pending' OR held.job_id IS NULL
            AND entry.turn IS NOT NULL AND NOT timeball.passed(entry.lane, entry.xid, job.id))
            THEN 'paused'
        ELSE coalesce(held.reason, last.reason)
    END AS reason, last.error_type, last.error,
    job.args, last.result, job.expires_at, job.key
FROM timeball.job
LEFT JOIN timeball.moved ON moved.job_id = job.id
JOIN timeball.lane ON lane.id = coalesce(moved.lane, job.lane)
LEFT JOIN timeball.queue ON queue.name = lane.queue
LEFT JOIN timeball.held ON held.job_id = job.id
LEFT JOIN LATERAL (
    SELECT ended.* FROM timeball.ended WHERE ended.job_id = job.id ORDER BY ended.turn DESC LIMIT 1
) AS last ON true
LEFT JOIN LATERAL timeball.latest_entry(job.id) AS entry ON held.job_id IS NULL
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE ended.began_at IS NOT NULL OR crashed) AS attempts,
        count(*) FILTER (WHERE ended.event IN ('retried', 'failed') AND NOT crashed
            AND coalesce(ended.reason, '') NOT IN ('parent', 'members')) AS failures,
        count(*) FILTER (WHERE crashed) AS crashes
    FROM timeball.ended
    CROSS JOIN LATERAL (
        SELECT ended.event = 'lost' OR ended.event = 'failed'
            AND (ended.began_at IS NULL
                AND coalesce(ended.reason, '') NOT IN ('parent', 'members')
                OR coalesce(ended.reason, '') IN ('lost', 'quarantined'))) AS c (crashed)
    WHERE ended.job_id = job.id
) AS past;
