-- Give a sign of life for workers; return those that have not been given up.
UPDATE timeball.worker
SET beat = worker.beat + 1, beat_at = timeball.now()
FROM (
    SELECT worker.id FROM timeball.worker
    WHERE worker.id = ANY (%(workers)s) AND worker.ended_at IS NULL
    ORDER BY worker.id
    FOR NO KEY UPDATE
) AS alive
WHERE worker.id = alive.id
RETURNING worker.id;
