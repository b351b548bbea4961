-- Look at the next p_limit jobs after p_after and delete those that ended longer ago than they
-- are to be kept. Returns how many were deleted, and the last job that was looked at; null
-- where no later one can be old enough.
--
-- Rows that somebody else has locked are left for the next time. What was found is asked again
-- once the rows are locked: a revival may have come between.
CREATE OR REPLACE FUNCTION timeball.trim_jobs(
    p_after bigint, p_limit integer, p_succeeded_s double precision, p_others_s double precision,
    OUT o_deleted integer, OUT o_after bigint
) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_old timestamptz := timeball.now() - make_interval(secs => least(p_succeeded_s, p_others_s));
    v_jobs bigint[];
    v_more boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'deleting needs READ COMMITTED' USING ERRCODE = 'TB002';
    END IF;
    SELECT array_agg(page.id), max(page.id), count(*) = p_limit AND min(page.created_at) <= v_old
    INTO v_jobs, o_after, v_more
    FROM (
        SELECT job.id, job.created_at FROM timeball.job
        WHERE job.id > p_after ORDER BY job.id LIMIT p_limit
    ) AS page;
    v_jobs := array(
        SELECT job.id FROM timeball.job
        WHERE job.id = ANY (timeball.overdue(v_jobs, p_succeeded_s, p_others_s))
        ORDER BY job.id
        FOR UPDATE SKIP LOCKED);
    v_jobs := timeball.deletable(timeball.overdue(v_jobs, p_succeeded_s, p_others_s));
    PERFORM timeball.erase(v_jobs);
    o_deleted := cardinality(v_jobs);
    IF v_more IS NOT TRUE THEN
        o_after := NULL;
    END IF;
END
$function$;
