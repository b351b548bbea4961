-- How many rows of each table are about a job that is not on record, by table and job.
SELECT row.of, row.job_id, count(*) FROM (
    SELECT 'entry' AS of, entry.job_id FROM timeball.entry
    UNION ALL SELECT 'ended', ended.job_id FROM timeball.ended
    UNION ALL SELECT 'held', held.job_id FROM timeball.held
    UNION ALL SELECT 'slot', slot.job_id FROM timeball.slot
    UNION ALL SELECT 'dependency', dependency.child FROM timeball.dependency
) AS row
WHERE NOT EXISTS (SELECT FROM timeball.job WHERE job.id = row.job_id)
GROUP BY row.of, row.job_id ORDER BY row.of, row.job_id LIMIT 1000;
