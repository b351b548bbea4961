-- Return active schedules that were computed from one version of a zone.
SELECT * FROM timeball.schedules
WHERE schedules.state = 'active' AND schedules.tz = %(tz)s
  AND schedules.zone_version = %(zone_version)s AND schedules.fingerprint = %(fingerprint)s
ORDER BY schedules.id
LIMIT %(limit)s;
