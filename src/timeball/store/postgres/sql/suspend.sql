-- Put a schedule whose occurrences cannot be computed into state "error".
UPDATE timeball.schedule
SET state = 'error', error = %(error)s, revision = schedule.revision + 1
WHERE schedule.id = %(schedule)s AND schedule.revision = %(revision)s AND schedule.state = 'active';
