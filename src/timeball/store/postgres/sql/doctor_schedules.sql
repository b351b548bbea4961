-- Return the schedules with how long each has been due, null where it is not, and its zone data.
SELECT schedule.name, schedule.state, coalesce(schedule.error, ''),
    CASE WHEN schedule.state = 'active' AND schedule.due_at < timeball.now()
        THEN extract(epoch FROM timeball.now() - schedule.due_at)::double precision END,
    schedule.zone_version
FROM timeball.schedule WHERE schedule.state <> 'retired'
ORDER BY schedule.id LIMIT %(most)s;
