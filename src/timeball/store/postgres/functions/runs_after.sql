-- Return the runs of a schedule that may not have ended, after some were added: where overlaps
-- are allowed only the latest, unless one of them waits for another.
CREATE OR REPLACE FUNCTION timeball.runs_after(
    p_policy text, p_runs bigint[], p_queued boolean, p_added bigint[]
) RETURNS bigint[] LANGUAGE sql STABLE
AS $function$
SELECT CASE
    WHEN p_added = '{}' THEN p_runs
    WHEN p_policy = 'allow' AND NOT (p_queued AND EXISTS (
        SELECT FROM timeball.held
        WHERE held.job_id = ANY (p_runs) AND held.reason = 'overlap'))
    THEN p_added[cardinality(p_added):]
    ELSE timeball.open_runs(p_runs) || p_added
END;
$function$;
