-- Take schedules that are due by the clock, but for those that somebody is at, and return them.
-- They are locked until the end of the transaction.
SELECT schedules.* FROM timeball.schedules
WHERE schedules.state = 'active' AND schedules.due_at <= timeball.now()
ORDER BY schedules.due_at, schedules.id
LIMIT %(limit)s
FOR NO KEY UPDATE SKIP LOCKED;
