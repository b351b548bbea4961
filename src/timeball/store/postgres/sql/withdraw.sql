-- Retire the schedules that a source once declared, but for those it still does.
UPDATE timeball.schedule
SET state = 'retired', next_at = NULL, revision = schedule.revision + 1
WHERE schedule.source = %(source)s
  AND schedule.state <> 'retired'
  AND schedule.name <> ALL (%(keep)s::text[])
RETURNING schedule.name;
