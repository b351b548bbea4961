-- Return the lanes into which waiting jobs may come: those of queues that a worker serves and nobody
-- has paused.
CREATE OR REPLACE FUNCTION timeball.open_lanes() RETURNS integer[] LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT array(
    SELECT lane.id FROM timeball.lane
    WHERE lane.queue IN (
        SELECT unnest(worker.queues) FROM timeball.worker WHERE worker.ended_at IS NULL
        EXCEPT
        SELECT queue.name FROM timeball.queue WHERE queue.paused_at IS NOT NULL));
$function$;
