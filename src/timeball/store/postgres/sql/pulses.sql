-- Return the latest beat of every worker that has not been given up or retired.
SELECT worker.id, worker.beat, worker.lease_s
FROM timeball.worker
WHERE worker.ended_at IS NULL
ORDER BY worker.id;
