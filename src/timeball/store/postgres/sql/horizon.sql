-- Return the last of so many rows that a list looks at from a job on backwards; null: it has fewer.
-- Plan: as many entries of one index, and no row.
SELECT CASE %(list)s
    WHEN 'jobs_ended' THEN (
        SELECT ended.job_id FROM timeball.ended
        WHERE ended.event IN ('failed', 'cancelled', 'skipped', 'expired')
          AND ended.job_id < coalesce(%(before_id)s::bigint, 9223372036854775807)
        ORDER BY ended.job_id DESC OFFSET %(most)s - 1 LIMIT 1)
    WHEN 'jobs_held' THEN (
        SELECT held.job_id FROM timeball.held
        WHERE held.job_id < coalesce(%(before_id)s::bigint, 9223372036854775807)
        ORDER BY held.job_id DESC OFFSET %(most)s - 1 LIMIT 1)
    WHEN 'jobs' THEN (
        SELECT job.id FROM timeball.job
        WHERE job.id < coalesce(%(before_id)s::bigint, 9223372036854775807)
        ORDER BY job.id DESC OFFSET %(most)s - 1 LIMIT 1)
END;
