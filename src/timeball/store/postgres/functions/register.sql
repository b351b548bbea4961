-- Add a worker and return its id. Jobs that waited for one of its kinds come back at once.
CREATE OR REPLACE FUNCTION timeball.register(
    p_name text, p_kinds text[], p_queues text[], p_lease_s double precision
) RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_worker bigint;
BEGIN
    -- Before a number is given out that a lost worker may have.
    IF NOT timeball.at_home() THEN
        RAISE EXCEPTION 'the ledger has come from another server, or a standby was promoted'
            USING ERRCODE = 'TB005', HINT = 'Call timeball.move_in() first.';
    END IF;
    INSERT INTO timeball.worker (name, kinds, queues, lease_s)
    VALUES (p_name, p_kinds, p_queues, p_lease_s)
    RETURNING worker.id INTO v_worker;

    PERFORM timeball.line_up(array(
        SELECT held.job_id FROM timeball.held
        WHERE held.reason = 'no_worker' AND held.kind = ANY (p_kinds)
        ORDER BY held.job_id
        FOR UPDATE SKIP LOCKED));
    RETURN v_worker;
END
$function$;
