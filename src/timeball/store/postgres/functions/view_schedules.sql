-- One row per schedule, for people with psql and for the readers of this package.
CREATE OR REPLACE VIEW timeball.schedules AS
SELECT schedule.id, schedule.revision, schedule.cursor_at, schedule.next_at, schedule.state,
    schedule.error, schedule.due_at, schedule.zone_version, schedule.fingerprint,
    schedule.offset_s, schedule.fired, schedule.fired_at, schedule.last_job, schedule.name,
    schedule.kind, schedule.expression, schedule.tz, schedule.gap, schedule.overlap,
    schedule.terms::text, schedule.args::text, schedule.queue, schedule.priority,
    schedule.max_retries, schedule.max_crashes, schedule.delivery, schedule.timeout_s,
    schedule.key, schedule.catchup, schedule.catchup_window_s, schedule.catchup_limit, schedule.grace_s,
    schedule.overlap_runs, schedule.source
FROM timeball.schedule;
