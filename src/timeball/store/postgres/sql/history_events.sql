-- Stream cancel requests, revivals and stale settlements, by job.
SELECT event.job_id, event.kind, event.turn, event.worker,
    extract(epoch FROM event.at)::double precision
FROM timeball.event
WHERE event.kind IN ('cancel_requested', 'stale_settlement', 'revived')
  AND event.job_id >= %(first)s
ORDER BY event.job_id, event.id;
