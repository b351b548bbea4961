-- Stream every job that may not start yet, by id.
SELECT held.job_id, held.turn, held.state, extract(epoch FROM held.run_at)::double precision,
    held.reason
FROM timeball.held WHERE held.job_id >= %(first)s
ORDER BY held.job_id;
