-- Return so many of the schedules that fire next, and of those that are in error.
(SELECT * FROM timeball.schedules WHERE schedules.state = 'error'
 ORDER BY schedules.name LIMIT %(most)s)
UNION ALL
(SELECT * FROM timeball.schedules
 WHERE schedules.state = 'active' AND schedules.due_at IS NOT NULL
 ORDER BY schedules.due_at, schedules.id LIMIT %(most)s);
