-- Wake the idle workers of these queues, as far as any worker serves them: a notification takes
-- a lock of the whole database at commit. Never needed: polling is the guarantee.
CREATE OR REPLACE FUNCTION timeball.wake(p_queues text[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
BEGIN
    PERFORM pg_notify('timeball_wake', u.queue)
    FROM (SELECT DISTINCT unnest(p_queues)) AS u (queue)
    WHERE EXISTS (
        SELECT FROM timeball.worker
        WHERE worker.ended_at IS NULL AND u.queue = ANY (worker.queues));
END
$function$;
