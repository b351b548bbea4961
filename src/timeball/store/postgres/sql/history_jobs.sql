-- Stream the facts of every job, by id.
SELECT job.id, job.uuid, job.kind, job.max_retries, job.max_crashes, job.at_most_once,
    extract(epoch FROM job.created_at)::double precision,
    extract(epoch FROM job.run_at)::double precision,
    extract(epoch FROM job.expires_at)::double precision
FROM timeball.job ORDER BY job.id;
