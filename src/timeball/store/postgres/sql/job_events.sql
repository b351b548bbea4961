-- Return what else happened to a job: cancel requests, revivals, settlements that came too late.
SELECT event.at, event.kind, event.turn, event.worker
FROM timeball.event WHERE event.job_id = %(job)s ORDER BY event.id DESC LIMIT %(limit)s;
