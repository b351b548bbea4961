-- Stream the facts of every job, by id.
SELECT job.id, job.uuid, job.kind, job.max_retries, job.max_crashes, job.at_most_once,
    extract(epoch FROM job.created_at)::double precision,
    extract(epoch FROM job.run_at)::double precision,
    extract(epoch FROM job.expires_at)::double precision, job.ruled_out
FROM timeball.job WHERE job.id >= %(first)s
ORDER BY job.id;
