-- Stream who counts against a limit now, by job.
SELECT slot.job_id, slot.scope, slot.name
FROM timeball.slot WHERE slot.job_id >= %(first)s ORDER BY slot.job_id, slot.scope, slot.name;
