-- Return what tells whether anything has changed that people look at, but for `queues`.
SELECT (SELECT max(job.id) FROM timeball.job),
    (SELECT max(event.id) FROM timeball.event),
    (SELECT max(operation.id) FROM timeball.operation),
    (SELECT md5(string_agg(concat(schedule.name, ' ', schedule.revision, ' ', schedule.state, ' ',
        schedule.cursor_at), ',' ORDER BY schedule.id)) FROM timeball.schedule),
    (SELECT array_agg(worker.id ORDER BY worker.id) FROM timeball.worker
     WHERE worker.ended_at IS NULL),
    (SELECT array_agg(newest.seq ORDER BY lane.id) FROM timeball.lane CROSS JOIN LATERAL (
        SELECT max(lease.seq) AS seq FROM timeball.lease WHERE lease.lane = lane.id) AS newest),
    (SELECT array_agg((limiter.scope, limiter.name, limiter.at_once, limiter.starts)::text
        ORDER BY limiter.scope, limiter.name) FROM timeball.limiter);
