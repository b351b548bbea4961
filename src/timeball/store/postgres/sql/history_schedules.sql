-- Stream every schedule there ever was, by id.
SELECT schedule.id, schedule.name, schedule.active_from, schedule.cursor_at
FROM timeball.schedule ORDER BY schedule.id;
