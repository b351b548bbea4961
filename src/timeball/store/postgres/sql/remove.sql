-- Retire one schedule.
UPDATE timeball.schedule
SET state = 'retired', next_at = NULL, due_at = NULL, revision = schedule.revision + 1
WHERE schedule.id = %(schedule)s AND schedule.state <> 'retired';
