-- Keep a schedule from firing until it is resumed.
UPDATE timeball.schedule
SET state = 'paused', error = NULL, revision = schedule.revision + 1
WHERE schedule.id = %(schedule)s AND schedule.state IN ('active', 'error');
