-- Return each live worker with the lanes in which it was granted turns, and from which of its leases
-- there on turns of it may be open: the floor of its newest one.
-- Plan: lease_of_worker from its end, one step a lane: lanes that it never had cost nothing.
CREATE OR REPLACE FUNCTION timeball.newest_leases()
RETURNS TABLE (worker bigint, lane integer, floor bigint) LANGUAGE sql STABLE
ROWS 100
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
WITH RECURSIVE newest AS (
    SELECT worker.id AS worker, one.lane, one.floor
    FROM timeball.worker
    CROSS JOIN LATERAL (
        SELECT lease.lane, lease.floor FROM timeball.lease
        WHERE lease.worker = worker.id
        ORDER BY lease.lane DESC, lease.seq DESC LIMIT 1
    ) AS one
    WHERE worker.ended_at IS NULL
    UNION ALL
    SELECT newest.worker, one.lane, one.floor
    FROM newest
    CROSS JOIN LATERAL (
        SELECT lease.lane, lease.floor FROM timeball.lease
        WHERE lease.worker = newest.worker AND lease.lane < newest.lane
        ORDER BY lease.lane DESC, lease.seq DESC LIMIT 1
    ) AS one
)
SELECT newest.worker, newest.lane, newest.floor FROM newest;
$function$;
