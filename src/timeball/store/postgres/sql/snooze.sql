-- event: snooze (pending -> scheduled)
-- Let a job that has not begun start at an instant at the earliest; see the function.
SELECT timeball.snooze(%(uuid)s, %(until)s);
