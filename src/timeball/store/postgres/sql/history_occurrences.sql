-- Stream every decision about an occurrence, by schedule.
SELECT occurrence.schedule_id, occurrence.nominal_at, occurrence.decision, occurrence.reason,
    occurrence.job_id, occurrence.at
FROM timeball.occurrence ORDER BY occurrence.schedule_id, occurrence.nominal_at;
