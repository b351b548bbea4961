-- Retire the schedules that a source once declared, but for those it still does.
UPDATE timeball.schedule
SET state = 'retired', next_at = NULL, due_at = NULL, revision = schedule.revision + 1
FROM (
    SELECT schedule.id FROM timeball.schedule
    WHERE schedule.source = %(source)s
      AND schedule.state <> 'retired'
      AND schedule.name <> ALL (%(keep)s::text[])
    ORDER BY schedule.id
    FOR NO KEY UPDATE
) AS gone
WHERE schedule.id = gone.id
RETURNING schedule.name;
