-- Decide every occurrence that has been decided once more.
INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason, job_id)
SELECT occurrence.schedule_id, occurrence.nominal_at, occurrence.decision, occurrence.reason,
    occurrence.job_id
FROM timeball.occurrence;
