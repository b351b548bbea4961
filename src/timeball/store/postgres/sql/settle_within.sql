-- event: succeed, retry, fail, snooze, release, cancel, expire
--   (running -> succeeded, failed, cancelled, scheduled, pending)
-- Settle in the transaction that the job itself has written in, of which it knows a success
-- only, and return accepted, already or stale; no row where it is not the transaction that the
-- attempt began in. Its deferred constraints are checked first, before a lock is taken.
-- From then on it holds what whoever links needs: should its worker stand still before the commit,
-- the server ends it.
SELECT timeball.settle(
    %(worker)s, %(lanes)s::integer[], %(seqs)s::bigint[], %(job_ids)s::bigint[],
    %(turns)s::integer[], %(events)s::text[], %(reasons)s::text[],
    %(delays_s)s::double precision[], %(began)s::double precision[],
    %(ran_s)s::double precision[], %(results)s::text[], %(error_types)s::text[],
    %(errors)s::text[])
FROM timeball.check_deferred(), set_config('idle_in_transaction_session_timeout', '10s', true)
WHERE pg_current_xact_id() = %(xid)s::xid8;
