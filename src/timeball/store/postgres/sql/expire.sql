-- event: expire, release (running -> pending, failed, cancelled)
-- Give a dead worker up; no row where it has beaten since; see the function.
SELECT released, lost, failed, cancelled
FROM timeball.expire(
    %(worker)s, %(beat)s::bigint, %(begun_jobs)s::bigint[], %(begun_turns)s::integer[], %(reason)s,
    %(began)s::double precision[]);
