-- Return a page of running jobs, newest first: of what live workers were granted and has not ended.
-- Plan: each worker's leases from the oldest with open turns on, as `view_queues` reads them.
SELECT jobs.id, jobs.uuid, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.turn,
    jobs.attempts, jobs.failures, jobs.crashes, jobs.max_retries, jobs.created_at, jobs.run_at,
    jobs.began_at, jobs.ended_at, jobs.worker,
    jobs.reason, jobs.error_type, jobs.error, jobs.args::text, jobs.result::text,
    jobs.expires_at, jobs.key
FROM (
    SELECT DISTINCT turn.job_id
    FROM timeball.worker
    CROSS JOIN timeball.lane
    CROSS JOIN LATERAL (
        SELECT lease.floor FROM timeball.lease
        WHERE lease.worker = worker.id AND lease.lane = lane.id
        ORDER BY lease.seq DESC LIMIT 1
    ) AS newest
    CROSS JOIN LATERAL (  -- a fence: else every lease that there is would be read first
        SELECT one.job_ids, one.turns FROM timeball.lease AS one
        WHERE one.worker = worker.id AND one.lane = lane.id AND one.seq >= newest.floor OFFSET 0
    ) AS lease
    CROSS JOIN LATERAL (
        SELECT * FROM unnest(lease.job_ids, lease.turns)
        EXCEPT SELECT ended.job_id, ended.turn FROM timeball.ended
        WHERE ended.job_id = ANY (lease.job_ids)
    ) AS turn (job_id, turn)
    WHERE worker.ended_at IS NULL
      AND turn.job_id < coalesce(%(before_id)s::bigint, 9223372036854775807)
      AND turn.job_id >= coalesce(%(from_id)s::bigint, 0)
    ORDER BY turn.job_id DESC
) AS found
CROSS JOIN LATERAL (SELECT * FROM timeball.jobs WHERE jobs.id = found.job_id LIMIT 1) AS jobs
WHERE (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
  AND (%(kind)s::text IS NULL OR jobs.kind = %(kind)s)
  AND jobs.state = %(state)s
ORDER BY found.job_id DESC
LIMIT %(limit)s;
