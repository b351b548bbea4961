-- Return for how many seconds the most overdue schedule has been due; 0 where none is.
SELECT coalesce(extract(epoch FROM timeball.now() - min(schedule.due_at)), 0)::double precision
FROM timeball.schedule
WHERE schedule.state = 'active' AND schedule.due_at <= timeball.now();
