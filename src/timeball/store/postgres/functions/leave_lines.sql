-- Return up to p_limit of those that wait for a rate, locked: of each line as many as can expect a
-- permit, first who has waited longest; only into queues that a worker serves and nobody has paused.
--
-- Those are counted, until they ask, as coming: the next ones follow for what permits there are
-- beside. Those that do not ask are counted for a while only: twice as long each time, so that
-- nothing gathers in front of workers that are busy. Who goes on to wait for a busy key is not
-- counted: he asks when it is his turn.
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
    v_now bigint;
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
        SELECT count(*) FILTER (WHERE held.key IS NULL)
            + count(DISTINCT held.key) FILTER (WHERE NOT EXISTS (
                SELECT FROM timeball.slot WHERE slot.scope = 'key' AND slot.name = held.key))
        INTO v_n FROM timeball.held WHERE held.job_id = ANY (v_jobs);
        v_now := extract(epoch FROM timeball.clock()) * 1000000;
        INSERT INTO timeball.permit (name) VALUES (v_line) ON CONFLICT DO NOTHING;
        UPDATE timeball.permit
        SET coming = v_n, coming_until = v_now + patience_s * 1000000,
            patience_s = least(2 * patience_s, 64)
        WHERE permit.name = v_line AND coming_until <= v_now;
        IF NOT FOUND THEN
            UPDATE timeball.permit SET coming = coming + v_n WHERE permit.name = v_line;
        END IF;
        UPDATE timeball.permit
        SET opens_us = greatest(v_now + 10000, timeball.permit_soon(permit, rate, v_now))
        FROM timeball.rate_of(v_line) AS rate WHERE permit.name = v_line;
    END LOOP;
    RETURN v_all;
END
$function$;
