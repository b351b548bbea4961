-- Return what became of each settlement that was sent, and record the stale ones. A part of
-- `settle`, as a later statement: an ending that another transaction has just committed, and
-- which the insert met, is seen only by a newer snapshot.
CREATE OR REPLACE FUNCTION timeball.verdicts(
    p_worker bigint, p_lanes integer[], p_seqs bigint[], p_job_ids bigint[], p_turns integer[],
    p_events text[], p_reasons text[], p_new bigint[], p_new_turns integer[]
) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
AS $function$
DECLARE
    v_verdicts text[];
BEGIN
    WITH sent AS MATERIALIZED (
        SELECT u.*,
            row_number() OVER (PARTITION BY u.job_id, u.turn, u.lane, u.seq ORDER BY u.n) = 1 AS first,
            count(*) OVER (PARTITION BY u.job_id, u.turn) > 1 AS repeated
        FROM unnest(p_lanes, p_seqs, p_job_ids, p_turns, p_events, p_reasons) WITH ORDINALITY
            AS u (lane, seq, job_id, turn, event, reason, n)
    ),
    new AS MATERIALIZED (
        SELECT u.job_id, u.turn FROM unnest(p_new, p_new_turns) AS u (job_id, turn)
    )
    SELECT array_agg(
        CASE
            WHEN sent.first AND (sent.job_id, sent.turn) IN (SELECT new.job_id, new.turn FROM new)
                AND (NOT sent.repeated OR EXISTS (  -- perhaps under a lease that never held it
                    SELECT FROM timeball.lease
                    WHERE lease.lane = sent.lane AND lease.seq = sent.seq
                      AND lease.worker = p_worker AND sent.job_id = ANY (lease.job_ids)))
                THEN 'accepted'
            WHEN (
                -- The reason tells a worker's own release from one that a sweeper made of it.
                -- Or it could not know whether its own success was committed: it was.
                SELECT ended.worker = p_worker AND (
                    ended.event = sent.event AND ended.reason IS NOT DISTINCT FROM sent.reason
                    OR ended.event = 'succeeded' AND sent.reason = 'uncommitted')
                FROM timeball.ended
                WHERE ended.job_id = sent.job_id AND ended.turn = sent.turn
            ) AND EXISTS (  -- said under the lease that holds it
                SELECT FROM timeball.lease
                WHERE lease.lane = sent.lane AND lease.seq = sent.seq
                  AND lease.worker = p_worker AND sent.job_id = ANY (lease.job_ids)
            ) THEN 'already'
            ELSE 'stale'
        END ORDER BY sent.n)
    INTO v_verdicts FROM sent;

    INSERT INTO timeball.event (kind, job_id, turn, worker, detail)
    SELECT 'stale_settlement', u.job_id, u.turn, p_worker, u.event
    FROM unnest(p_job_ids, p_turns, p_events, v_verdicts) AS u (job_id, turn, event, verdict)
    JOIN timeball.job ON job.id = u.job_id  -- of a deleted one nothing is kept
    WHERE u.verdict = 'stale'
    ORDER BY u.job_id, u.turn;
    RETURN v_verdicts;
END
$function$;
