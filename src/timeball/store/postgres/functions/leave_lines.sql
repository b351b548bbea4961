-- Return up to p_limit of those that wait for a rate, locked: of each line as many as can expect a
-- permit, first who has waited longest; only into queues that a worker serves and nobody has paused.
--
-- The next ones follow once these have asked for their permits, or after a while: twice as long
-- each time, so that nothing gathers in front of workers that are busy.
CREATE OR REPLACE FUNCTION timeball.leave_lines(p_limit integer) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $function$
DECLARE
    v_lanes integer[] := timeball.open_lanes();
    v_line text := '';
    v_jobs bigint[];
    v_n integer;
    v_all bigint[] := '{}';
BEGIN
    LOOP
        SELECT held.line INTO v_line FROM timeball.held
        WHERE held.line > v_line ORDER BY held.line LIMIT 1;
        EXIT WHEN NOT FOUND;
        v_n := timeball.expected(v_line, p_limit - cardinality(v_all));
        CONTINUE WHEN v_n <= 0;
        v_jobs := array(
            SELECT first.job_id
            FROM unnest(v_lanes) AS open (lane)
            CROSS JOIN LATERAL (
                SELECT held.job_id, held.at FROM timeball.held
                WHERE held.line = v_line AND held.lane = open.lane
                ORDER BY held.at, held.job_id
                LIMIT v_n
                FOR UPDATE SKIP LOCKED
            ) AS first
            ORDER BY first.at, first.job_id
            LIMIT v_n);
        CONTINUE WHEN v_jobs = '{}';
        v_all := v_all || v_jobs;
        UPDATE timeball.permit
        SET opens_us = extract(epoch FROM timeball.clock()) * 1000000 + patience_s * 1000000,
            patience_s = least(2 * patience_s, 64)
        WHERE permit.name = v_line;
    END LOOP;
    RETURN v_all;
END
$function$;
