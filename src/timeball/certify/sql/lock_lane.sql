-- Hold the lock of a lane as a claim does, until the transaction ends: a gate for claims.
SELECT pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, lane.id), lane.id
FROM timeball.lane WHERE lane.queue = %(queue)s;
