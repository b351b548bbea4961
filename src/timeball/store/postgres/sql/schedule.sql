-- Return one schedule that is not retired, or no row.
SELECT * FROM timeball.schedules
WHERE schedules.name = %(name)s AND schedules.state <> 'retired';
