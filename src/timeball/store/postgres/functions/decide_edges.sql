-- event: skip (waiting -> skipped, failed)
-- Decide the linked edges of jobs that have ended, each once. Returns the children that may start
-- now, and those that are ruled out, which have ended now too. A part of `tell_children`, which
-- has locked the children.
CREATE OR REPLACE FUNCTION timeball.decide_edges(
    p_ended bigint[], p_events text[],
    OUT o_free bigint[], OUT o_ended bigint[], OUT o_events text[]
) LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
BEGIN
    WITH decided AS (
        UPDATE timeball.dependency AS edge SET decided_at = timeball.clock(), met = found.met
        FROM (
            SELECT open.child, open.parent, u.event, timeball.is_met(open.rule, u.event) AS met
            FROM unnest(p_ended, p_events) AS u (job_id, event)
            JOIN timeball.dependency AS open ON open.parent = u.job_id
                AND open.decided_at IS NULL AND open.linked_at IS NOT NULL
            ORDER BY open.child, open.parent
            FOR NO KEY UPDATE OF open
        ) AS found
        WHERE edge.child = found.child AND edge.parent = found.parent AND edge.decided_at IS NULL
        RETURNING edge.child, edge.parent_uuid, edge.met, found.event,
            edge.rule IN ('one_success', 'one_failed') AS one
    ),
    told AS (
        SELECT decided.child, count(*) FILTER (WHERE NOT decided.one)::integer AS alls,
            count(*) FILTER (WHERE decided.one)::integer AS ones,
            bool_or(decided.one AND decided.met) AS met,
            bool_or(NOT decided.one AND NOT decided.met) AS lost,
            min(format('%s is %s', decided.parent_uuid, decided.event))
                FILTER (WHERE NOT decided.met) AS because
        FROM decided GROUP BY decided.child
    ),
    counted AS (
        SELECT held.job_id, held.turn, held.all_left - told.alls AS all_left,
            held.one_left - told.ones AS one_left, held.one_met OR told.met AS one_met,
            held.lost OR told.lost AS lost, told.because, job.ruled_out
        FROM told
        JOIN timeball.held ON held.job_id = told.child AND held.state = 'waiting'
        JOIN timeball.job ON job.id = held.job_id
    ),
    judged AS MATERIALIZED (
        SELECT counted.*, timeball.sentence(counted.all_left, counted.one_left, counted.one_met,
            counted.lost, counted.ruled_out) AS sentence
        FROM counted
    ),
    waiting AS (
        UPDATE timeball.held AS child SET all_left = judged.all_left, one_left = judged.one_left,
            one_met = judged.one_met, lost = judged.lost
        FROM judged WHERE child.job_id = judged.job_id AND judged.sentence = 'wait'
    ),
    gone AS (
        DELETE FROM timeball.held USING judged
        WHERE held.job_id = judged.job_id AND judged.sentence IN ('skip', 'fail')
    ),
    written AS (
        INSERT INTO timeball.ended (job_id, turn, event, reason, error)
        SELECT judged.job_id, judged.turn,
            CASE judged.sentence WHEN 'skip' THEN 'skipped' ELSE 'failed' END, 'parent',
            format('its parent, job %s', judged.because)
        FROM judged
        WHERE judged.sentence IN ('skip', 'fail')
        ORDER BY judged.job_id
        RETURNING ended.job_id, ended.event
    )
    SELECT coalesce((SELECT array_agg(judged.job_id) FROM judged WHERE judged.sentence = 'release'),
            '{}'),
        (SELECT array_agg(written.job_id ORDER BY written.job_id) FROM written),
        (SELECT array_agg(written.event ORDER BY written.job_id) FROM written)
    INTO o_free, o_ended, o_events;
END
$function$;
