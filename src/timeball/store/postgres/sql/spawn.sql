-- event: await, cancel (running -> waiting, cancelled)
-- Record that a turn has ended, and add what its job has spawned; see the function.
SELECT timeball.spawn(
    %(worker)s, %(lane)s, %(seq)s, %(job_id)s, %(turn)s, %(began)s::double precision,
    %(ran_s)s::double precision, %(result)s::text, %(jobs)s::jsonb);
