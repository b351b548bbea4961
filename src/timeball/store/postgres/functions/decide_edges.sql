-- event: skip (waiting -> skipped, failed)
-- Decide the linked edges of jobs that have ended in the same way, each once. Returns the children
-- that may start now, and those that are ruled out, which are skipped or have failed now. A part
-- of `tell_waves`, whose caller has locked them. Edges to batches are left to `end_batches`.
-- Who was revived may wait for what it spawned while edges from its parents are undecided yet, or
-- the other way round: only those count that it waits for now.
-- Plan: nested loops are off, since the join of what was judged would become one of n * n; the
-- lateral index probes stay what they are.
CREATE OR REPLACE FUNCTION timeball.decide_edges(
    p_ended bigint[], p_event text, OUT o_free bigint[], OUT o_skipped bigint[], OUT o_failed bigint[]
) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET enable_mergejoin = off
AS $function$
BEGIN
    WITH decided AS (
        UPDATE timeball.dependency AS edge
        SET decided_at = timeball.clock(), met = timeball.is_met(edge.rule, p_event)
        WHERE edge.parent = ANY (p_ended) AND edge.decided_at IS NULL AND edge.linked_at IS NOT NULL
          AND NOT edge.joins
        RETURNING edge.child, edge.parent_uuid, edge.met, edge.spawned,
            edge.rule IN ('one_success', 'one_failed') AS one
    ),
    told AS (
        SELECT decided.child, decided.spawned,
            count(*) FILTER (WHERE NOT decided.one)::integer AS alls,
            count(*) FILTER (WHERE decided.one)::integer AS ones,
            bool_or(decided.one AND decided.met) AS met,
            bool_or(NOT decided.one AND NOT decided.met) AS lost,
            min(decided.parent_uuid::text) FILTER (WHERE NOT decided.met) AS because
        FROM decided GROUP BY decided.child, decided.spawned
    ),
    counted AS (
        SELECT held.job_id, held.turn, held.all_left - told.alls AS all_left,
            held.one_left - told.ones AS one_left, held.one_met OR told.met AS one_met,
            held.lost OR told.lost AS lost, told.because, job.ruled_out
        FROM told
        CROSS JOIN LATERAL (
            SELECT child.* FROM timeball.held AS child
            WHERE child.job_id = told.child AND child.state = 'waiting'
              AND (child.reason = 'spawned') = told.spawned
            OFFSET 0
        ) AS held
        CROSS JOIN LATERAL (
            SELECT fact.ruled_out FROM timeball.job AS fact WHERE fact.id = told.child OFFSET 0
        ) AS job
    ),
    judged AS MATERIALIZED (
        SELECT counted.*, timeball.sentence(counted.all_left, counted.one_left, counted.one_met,
            counted.lost, counted.ruled_out) AS sentence
        FROM counted
    ),
    waiting AS (
        UPDATE timeball.held AS child SET all_left = judged.all_left, one_left = judged.one_left,
            one_met = judged.one_met, lost = judged.lost
        FROM judged
        WHERE child.job_id = judged.job_id AND judged.sentence = 'wait'
          AND child.job_id = ANY (array(SELECT j.job_id FROM judged AS j WHERE j.sentence = 'wait'))
    ),
    gone AS (
        DELETE FROM timeball.held WHERE held.job_id = ANY (array(
            SELECT j.job_id FROM judged AS j WHERE j.sentence IN ('skip', 'fail')))
    ),
    written AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason, error)
        SELECT judged.job_id, judged.turn,
            CASE judged.sentence WHEN 'skip' THEN 'skipped' ELSE 'failed' END, 'parent',
            format('its parent, job %s, is %s', judged.because, p_event)
        FROM judged WHERE judged.sentence IN ('skip', 'fail')
        ORDER BY judged.job_id
    )
    SELECT coalesce(array_agg(judged.job_id) FILTER (WHERE judged.sentence = 'release'), '{}'),
        coalesce(array_agg(judged.job_id) FILTER (WHERE judged.sentence = 'skip'), '{}'),
        coalesce(array_agg(judged.job_id) FILTER (WHERE judged.sentence = 'fail'), '{}')
    INTO o_free, o_skipped, o_failed
    FROM judged;
END
$function$;
