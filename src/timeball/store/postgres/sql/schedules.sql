-- Return every schedule that is not retired.
SELECT * FROM timeball.schedules WHERE schedules.state <> 'retired' ORDER BY schedules.name;
