-- Return how a batch ends, as in core/batches.py; null where an edge is undecided, or it is open.
-- Its row must be locked.
CREATE OR REPLACE FUNCTION timeball.batch_end(p_batch bigint) RETURNS text LANGUAGE sql STABLE
SET enable_seqscan = off
AS $function$
SELECT CASE
    WHEN 'open' = (SELECT held.reason FROM timeball.held WHERE held.job_id = p_batch) THEN NULL
    WHEN EXISTS (
        SELECT FROM timeball.dependency AS edge
        WHERE edge.child = p_batch AND edge.joins AND edge.decided_at IS NULL) THEN NULL
    ELSE (
        SELECT CASE
            WHEN bool_or(edge.rule NOT LIKE 'one%' AND edge.rule <> 'member' AND NOT edge.met)
                OR bool_or(edge.rule LIKE 'one%')
                AND NOT bool_or(edge.rule LIKE 'one%' AND edge.met) THEN 'skipped'
            WHEN bool_or(edge.rule = 'member' AND NOT edge.met
                AND coalesce(last.event, 'failed') = 'failed') THEN 'failed'
            WHEN bool_or(edge.rule = 'member' AND last.event = 'cancelled') THEN 'cancelled'
            WHEN bool_or(edge.rule = 'member')
                AND NOT bool_or(edge.rule = 'member' AND (edge.met OR last.event = 'succeeded'))
                THEN 'skipped'
            ELSE 'succeeded'
        END
        FROM timeball.dependency AS edge
        LEFT JOIN LATERAL (
            SELECT ended.event FROM timeball.ended
            WHERE NOT edge.met AND ended.job_id = edge.parent
              AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
            ORDER BY ended.turn DESC LIMIT 1
        ) AS last ON true
        WHERE edge.child = p_batch)
END;
$function$;
