-- Return active schedules of a zone that were computed from one version of the zone data.
SELECT * FROM timeball.schedules
WHERE schedules.state = 'active' AND schedules.tz = %(tz)s
  AND schedules.zone_version = %(zone_version)s
ORDER BY schedules.id
LIMIT %(limit)s;
