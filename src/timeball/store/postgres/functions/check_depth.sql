-- Raise TB006 where jobs that are about to be added would take a queue beyond its max_depth:
-- with those pending and held in it. Every job counts whose uuid is not known yet.
--
-- No lock is taken, for a caller may hold it as long as he likes: what others are just adding,
-- and what this transaction has added before to the lane, is not seen. Reads no more than
-- max_depth jobs, and those cancelled that no claim has passed yet.
-- Plan: pinned, so that each lane is read through entry_order from its cursor on.
CREATE OR REPLACE FUNCTION timeball.check_depth(p_jobs jsonb) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    v_queue record;
    v_depth bigint;
BEGIN
    FOR v_queue IN
        SELECT queue.name, queue.max_depth, count(DISTINCT spec.uuid) AS more
        FROM jsonb_to_recordset(p_jobs) AS spec (uuid uuid, queue text)
        JOIN timeball.queue ON queue.name = coalesce(spec.queue, 'default')
        WHERE queue.max_depth IS NOT NULL
          AND NOT EXISTS (SELECT FROM timeball.job WHERE job.uuid = spec.uuid)
        GROUP BY queue.name, queue.max_depth
        ORDER BY queue.name
    LOOP
        SELECT count(*) INTO v_depth
        FROM (
            SELECT
            FROM timeball.lane
            CROSS JOIN LATERAL (
                SELECT FROM timeball.line_of(lane.id, NULL) AS line WHERE line.live
                UNION ALL
                SELECT FROM timeball.held WHERE held.lane = lane.id
            ) AS waiting
            WHERE lane.queue = v_queue.name
            LIMIT v_queue.max_depth
        ) AS counted;
        IF v_depth + v_queue.more > v_queue.max_depth THEN
            RAISE EXCEPTION 'queue % is full: % jobs wait in it, % more would pass its limit of %',
                v_queue.name, v_depth, v_queue.more, v_queue.max_depth
                USING ERRCODE = 'TB006', DETAIL = v_queue.name,
                HINT = 'Submit again when some have started, or raise its max_depth.';
        END IF;
    END LOOP;
END
$function$;
