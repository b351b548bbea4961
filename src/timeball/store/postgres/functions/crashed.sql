-- Return endings as they were given, but that a turn whose attempt took its process with it
-- fails where the job has now crashed too often, or may run only once. A part of `settle`: how
-- many crashes a job may cost is for its row to say, not for the worker.
CREATE OR REPLACE FUNCTION timeball.crashed(
    p_job_ids bigint[], p_turns integer[], p_events text[], p_reasons text[]
) RETURNS TABLE (events text[], reasons text[]) LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
SELECT array_agg(CASE WHEN fate.failure IS NULL THEN u.event ELSE 'failed' END ORDER BY u.n),
    array_agg(coalesce(fate.failure, u.reason) ORDER BY u.n)
FROM unnest(p_job_ids, p_turns, p_events, p_reasons) WITH ORDINALITY
    AS u (job_id, turn, event, reason, n)
LEFT JOIN LATERAL (
    SELECT CASE
        WHEN u.turn >= 2147483646 THEN 'turns'
        WHEN job.at_most_once THEN 'lost'
        WHEN coalesce(entry.crashes, 0) + 1 >= job.max_crashes THEN 'quarantined'
    END AS failure
    FROM timeball.job
    LEFT JOIN timeball.entry
        ON entry.job_id = job.id AND entry.turn = u.turn AND entry.attempts IS NOT NULL
    WHERE job.id = u.job_id AND u.event = 'lost'
) AS fate ON true;
$function$;
