-- Return the number of a batch by its uuid; raises where there is none.
CREATE OR REPLACE FUNCTION timeball.batch_id(p_batch uuid) RETURNS bigint LANGUAGE plpgsql STABLE
AS $function$
DECLARE
    v_batch bigint;
BEGIN
    SELECT job.id INTO v_batch FROM timeball.job
    WHERE job.uuid = p_batch AND job.kind = 'timeball.batch';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no batch %', p_batch USING ERRCODE = 'TB010', DETAIL = p_batch::text;
    END IF;
    RETURN v_batch;
END
$function$;
