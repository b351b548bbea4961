-- The stretches of (transaction, job) that lie in the window of two snapshots.
SELECT ahead.lo_xid::text, ahead.lo_id, ahead.hi_xid::text, ahead.hi_id
FROM timeball.ahead(%(prev)s::pg_snapshot, %(cur)s::pg_snapshot, '0', 0) AS ahead;
