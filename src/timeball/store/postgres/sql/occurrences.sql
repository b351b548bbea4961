-- Return a page of what was decided about a schedule's occurrences, latest first.
SELECT occurrence.nominal_at, occurrence.at, occurrence.decision, occurrence.reason,
    jobs.uuid, jobs.state
FROM (
    SELECT * FROM timeball.occurrence
    WHERE occurrence.schedule_id = %(schedule)s
      AND occurrence.nominal_at < coalesce(%(before)s::timestamptz, 'infinity')
    ORDER BY occurrence.nominal_at DESC
    LIMIT %(limit)s
) AS occurrence
LEFT JOIN timeball.jobs ON jobs.id = occurrence.job_id
ORDER BY occurrence.nominal_at DESC;
