-- event: succeed, retry, fail, snooze, release, cancel, expire
--   (running -> succeeded, failed, cancelled, scheduled, pending)
-- Record how turns ended; return accepted, already or stale for each; see the function.
SELECT timeball.settle(
    %(worker)s, %(lanes)s::integer[], %(seqs)s::bigint[], %(job_ids)s::bigint[],
    %(turns)s::integer[], %(events)s::text[], %(reasons)s::text[],
    %(delays_s)s::double precision[], %(began)s::double precision[],
    %(ran_s)s::double precision[], %(results)s::text[], %(error_types)s::text[],
    %(errors)s::text[]);
