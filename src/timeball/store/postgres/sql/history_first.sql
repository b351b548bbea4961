-- The oldest job to which anything has happened since an instant; beyond all, if nothing has.
SELECT coalesce(least(
    (SELECT min(job.id) FROM timeball.job WHERE job.created_at >= %(since)s),
    (SELECT min(entry.job_id) FROM timeball.entry WHERE entry.at >= %(since)s),
    (SELECT min(ended.job_id) FROM timeball.ended WHERE ended.at >= %(since)s),
    (SELECT min(granted.job_id) FROM timeball.lease, unnest(lease.job_ids) AS granted (job_id)
        WHERE lease.at >= %(since)s)), 9223372036854775807);
