-- Return schedules that are due by the clock, but for those that somebody is firing now.
-- The locks are gone with this statement: `fire` compares.
SELECT schedules.* FROM timeball.schedules
WHERE schedules.state = 'active' AND schedules.due_at <= timeball.now()
ORDER BY schedules.due_at, schedules.id
LIMIT %(limit)s
FOR NO KEY UPDATE SKIP LOCKED;
