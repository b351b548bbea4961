-- Take the unique keys of jobs that are about to be added, and return the jobs: one that gives
-- way to the holder of its key has that job's uuid, so that it adds nothing, and no parents: that
-- job may be a new one too. Raises TB004 where a job is not to give way.
--
-- A key is freed by nobody: who comes next takes it over from a job that does not hold it any
-- more. Each key's row is locked, or made, in the order of the keys, by one statement that does
-- not write what is there; what it holds is read by a later one, when whoever had it locked
-- has committed.
CREATE OR REPLACE FUNCTION timeball.take_keys(p_jobs jsonb) RETURNS jsonb LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_jobs jsonb[] := array(
        SELECT job.value FROM jsonb_array_elements(p_jobs) WITH ORDINALITY AS job (value, n)
        ORDER BY job.n);
    v_new uuid[] := '{}';
    v_holder timeball.unique_key%ROWTYPE;
    v_spec record;
BEGIN
    FOR v_spec IN
        SELECT spec.n, spec.uuid, spec.kind, spec.unique_key AS word,
            coalesce(spec.on_clash, 'ignore') AS rule,
            coalesce(spec.until_started, false) AS until_started,
            timeball.unique_name(spec.unique_key, coalesce(spec.unique_scope, 'kind'),
                spec.kind, coalesce(spec.queue, 'default')) COLLATE "C" AS key
        FROM ROWS FROM (jsonb_to_recordset(p_jobs) AS (
            uuid uuid, kind text, queue text, unique_key text, unique_scope text,
            until_started boolean, on_clash text)
        ) WITH ORDINALITY AS spec (uuid, kind, queue, unique_key, unique_scope,
            until_started, on_clash, n)
        WHERE spec.unique_key IS NOT NULL
        ORDER BY key, n
    LOOP
        CONTINUE WHEN EXISTS (SELECT FROM timeball.job WHERE job.uuid = v_spec.uuid);
        INSERT INTO timeball.unique_key AS taken (key, job, until_started)
        VALUES (v_spec.key, v_spec.uuid, v_spec.until_started)
        ON CONFLICT (key) DO UPDATE SET job = taken.job WHERE false;
        IF FOUND THEN
            v_new := v_new || v_spec.uuid;
            CONTINUE;
        END IF;

        SELECT * INTO v_holder FROM timeball.unique_key WHERE unique_key.key = v_spec.key;
        CONTINUE WHEN v_holder.job = v_spec.uuid;
        IF v_holder.job <> ALL (v_new) AND (
            NOT timeball.holds_key(v_holder.job, v_holder.until_started)
            OR v_spec.rule = 'replace' AND timeball.replace_held(v_holder.job))
        THEN
            UPDATE timeball.unique_key SET job = v_spec.uuid, until_started = v_spec.until_started
            WHERE unique_key.key = v_spec.key;
            v_new := v_new || v_spec.uuid;
        ELSIF v_spec.rule = 'ignore' THEN
            v_jobs[v_spec.n] := jsonb_set(
                v_jobs[v_spec.n] - 'after', '{uuid}', to_jsonb(v_holder.job));
        ELSE
            RAISE EXCEPTION 'job % holds the unique key %', v_holder.job, v_spec.word
                USING ERRCODE = 'TB004', DETAIL = v_holder.job::text;
        END IF;
    END LOOP;
    RETURN to_jsonb(v_jobs);
END
$function$;
