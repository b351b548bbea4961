-- Return which zones active schedules are in, and from which zone data they were computed.
SELECT DISTINCT schedule.tz, schedule.zone_version
FROM timeball.schedule
WHERE schedule.state = 'active'
ORDER BY schedule.tz, schedule.zone_version;
