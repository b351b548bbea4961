-- Return schedules whose next occurrence is not after the clock. No lock: `fire` compares.
SELECT schedule.id, schedule.revision, schedule.cursor_at, schedule.next_at, schedule.state,
    schedule.error, schedule.name, schedule.kind, schedule.expression, schedule.tz, schedule.gap,
    schedule.overlap, schedule.args::text, schedule.queue, schedule.priority,
    schedule.max_retries, schedule.timeout_s, schedule.catchup, schedule.source
FROM timeball.schedule
WHERE schedule.state = 'active' AND schedule.next_at <= timeball.now()
ORDER BY schedule.next_at, schedule.id
LIMIT %(limit)s;
