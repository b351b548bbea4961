-- Return the workers whose lease has run out, and that nobody has given up.
SELECT worker.name, worker.id,
    extract(epoch FROM timeball.now() - worker.beat_at)::double precision, worker.lease_s
FROM timeball.worker
WHERE worker.ended_at IS NULL
  AND worker.beat_at < timeball.now() - make_interval(secs => worker.lease_s)
ORDER BY worker.id LIMIT %(most)s;
