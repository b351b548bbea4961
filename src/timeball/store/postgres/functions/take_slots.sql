-- Take slots of a queue or a key for the first of some jobs, as far as there are free ones,
-- and return the jobs that have one now.
--
-- The key of `slot` decides: of two who want the same one, the second waits for the first and
-- goes without. Who has got any does not try again, for he would hold some while he waits.
CREATE OR REPLACE FUNCTION timeball.take_slots(
    p_scope text, p_name text, p_at_once integer, p_jobs bigint[]
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_free integer;
    v_jobs bigint[];
BEGIN
    LOOP
        WITH used AS MATERIALIZED (
            SELECT slot.n FROM timeball.slot WHERE slot.scope = p_scope AND slot.name = p_name
        ),
        free AS MATERIALIZED (
            SELECT place.n, row_number() OVER (ORDER BY place.n) AS rank
            FROM generate_series(1, p_at_once) AS place (n)
            WHERE place.n <> ALL (array(SELECT used.n FROM used))
            ORDER BY place.n
            -- Less than it looks where the limit was lowered: higher slots may be in use.
            LIMIT greatest(0, least(cardinality(p_jobs), p_at_once - (SELECT count(*) FROM used)))
        ),
        taken AS (
            INSERT INTO timeball.slot (scope, name, n, job_id)
            SELECT p_scope, p_name, free.n, p_jobs[free.rank] FROM free ORDER BY free.n
            ON CONFLICT DO NOTHING
            RETURNING slot.n, slot.job_id
        )
        SELECT (SELECT count(*) FROM free), coalesce(array_agg(taken.job_id ORDER BY taken.n), '{}')
        INTO v_free, v_jobs FROM taken;
        EXIT WHEN v_free = 0 OR v_jobs <> '{}';
    END LOOP;
    RETURN v_jobs;
END
$function$;
