-- Give a sign of life for workers; return those that have not been given up.
UPDATE timeball.worker
SET beat = worker.beat + 1, beat_at = timeball.now()
WHERE worker.id = ANY (%(workers)s) AND worker.ended_at IS NULL
RETURNING worker.id;
