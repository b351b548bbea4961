-- Take back endings that were just written for jobs that do not exist any more, and return
-- the other ones. A part of `settle` and `expire`, as a later statement: what a deletion took
-- away while the insert waited is seen only by a newer snapshot.
CREATE OR REPLACE FUNCTION timeball.disown(
    p_jobs bigint[], p_turns integer[], OUT o_jobs bigint[], OUT o_turns integer[]
) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_gone bigint[] := array(
        SELECT u.id FROM unnest(p_jobs) AS u (id)
        WHERE NOT EXISTS (SELECT FROM timeball.job WHERE job.id = u.id));
BEGIN
    DELETE FROM timeball.ended USING unnest(p_jobs, p_turns) AS u (job_id, turn)
    WHERE u.job_id = ANY (v_gone) AND ended.job_id = u.job_id AND ended.turn = u.turn;
    SELECT coalesce(array_agg(u.job_id), '{}'), coalesce(array_agg(u.turn), '{}')
    INTO o_jobs, o_turns
    FROM unnest(p_jobs, p_turns) AS u (job_id, turn)
    WHERE u.job_id <> ALL (v_gone);
END
$function$;
