-- Give back the slots of jobs whose turns have just ended, and return the keys that have room
-- now. Idle workers are told of the queues that have.
CREATE OR REPLACE FUNCTION timeball.free_slots(p_jobs bigint[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_keys text[];
    v_queues text[];
BEGIN
    WITH gone AS (
        DELETE FROM timeball.slot WHERE slot.job_id = ANY (p_jobs) RETURNING slot.scope, slot.name
    )
    SELECT array_agg(DISTINCT gone.name) FILTER (WHERE gone.scope = 'key'),
        array_agg(DISTINCT gone.name) FILTER (WHERE gone.scope = 'queue')
    INTO v_keys, v_queues FROM gone;
    PERFORM pg_notify('timeball_wake', u.queue) FROM unnest(v_queues) AS u (queue);
    RETURN v_keys;
END
$function$;
