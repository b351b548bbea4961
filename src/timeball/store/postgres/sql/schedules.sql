-- Return every schedule that is not retired.
SELECT schedule.id, schedule.revision, schedule.cursor_at, schedule.next_at, schedule.state,
    schedule.error, schedule.name, schedule.kind, schedule.expression, schedule.tz, schedule.gap,
    schedule.overlap, schedule.args::text, schedule.queue, schedule.priority,
    schedule.max_retries, schedule.timeout_s, schedule.catchup, schedule.source
FROM timeball.schedule
WHERE schedule.state <> 'retired'
ORDER BY schedule.name;
