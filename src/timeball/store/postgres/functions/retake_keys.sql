-- Take the unique keys of ended jobs that are about to be revived, and return those of the jobs
-- whose key is another one's by now. See take_keys for the locks.
CREATE OR REPLACE FUNCTION timeball.retake_keys(p_jobs bigint[]) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_new uuid[] := '{}';
    v_clashed bigint[] := '{}';
    v_holder timeball.unique_key%ROWTYPE;
    v_job record;
BEGIN
    FOR v_job IN
        SELECT job.id, job.uuid, job.unique_key AS key, job.until_started FROM timeball.job
        WHERE job.id = ANY (p_jobs) AND job.unique_key IS NOT NULL
        ORDER BY job.unique_key COLLATE "C", job.id
    LOOP
        INSERT INTO timeball.unique_key AS taken (key, job, until_started)
        VALUES (v_job.key, v_job.uuid, v_job.until_started)
        ON CONFLICT (key) DO UPDATE SET job = taken.job WHERE false;
        SELECT * INTO v_holder FROM timeball.unique_key WHERE unique_key.key = v_job.key;
        IF v_holder.job <> v_job.uuid AND (v_holder.job = ANY (v_new)
            OR timeball.holds_key(v_holder.job, v_holder.until_started))
        THEN
            v_clashed := v_clashed || v_job.id;
            CONTINUE;
        END IF;
        UPDATE timeball.unique_key SET job = v_job.uuid, until_started = v_job.until_started
        WHERE unique_key.key = v_job.key;
        v_new := v_new || v_job.uuid;
    END LOOP;
    RETURN v_clashed;
END
$function$;
