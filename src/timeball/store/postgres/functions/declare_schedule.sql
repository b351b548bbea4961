-- Add a schedule or change the one of that name, and return its id.
-- A new meaning (expression, zone, policy, terms) and a return from retirement start at
-- p_standing; any other change keeps the cursor, and takes the schedule out of an error.
-- What is the same already is left alone.
CREATE OR REPLACE FUNCTION timeball.declare_schedule(p_spec jsonb, p_standing jsonb)
RETURNS bigint LANGUAGE plpgsql
AS $function$
DECLARE
    v_new timeball.schedule%ROWTYPE;
    v_old timeball.schedule%ROWTYPE;
    v_id bigint;
    v_moved boolean;
BEGIN
    v_new := jsonb_populate_record(NULL::timeball.schedule, p_spec || p_standing);
    INSERT INTO timeball.schedule (name, kind, expression, tz, gap, overlap, terms, args, queue,
        priority, max_retries, max_crashes, delivery, timeout_s, key, catchup, catchup_window_s,
        catchup_limit, grace_s, overlap_runs, source, active_from, cursor_at, next_at, due_at,
        zone_version, fingerprint, offset_s)
    VALUES (v_new.name, v_new.kind, v_new.expression, v_new.tz, v_new.gap, v_new.overlap,
        v_new.terms, v_new.args, v_new.queue, v_new.priority, v_new.max_retries,
        v_new.max_crashes, v_new.delivery, v_new.timeout_s, v_new.key, v_new.catchup,
        v_new.catchup_window_s, v_new.catchup_limit, v_new.grace_s, v_new.overlap_runs,
        v_new.source, v_new.cursor_at, v_new.cursor_at, v_new.next_at, v_new.due_at,
        v_new.zone_version, v_new.fingerprint, v_new.offset_s)
    ON CONFLICT (name) DO NOTHING
    RETURNING schedule.id INTO v_id;
    IF FOUND THEN
        RETURN v_id;
    END IF;

    SELECT * INTO v_old FROM timeball.schedule WHERE schedule.name = v_new.name FOR UPDATE;
    v_moved := (v_old.expression, v_old.tz, v_old.gap, v_old.overlap, v_old.terms)
        IS DISTINCT FROM (v_new.expression, v_new.tz, v_new.gap, v_new.overlap, v_new.terms)
        OR v_old.state = 'retired';
    IF NOT v_moved AND v_old.state <> 'error' AND (
        v_old.kind, v_old.args, v_old.queue, v_old.priority, v_old.max_retries,
        v_old.max_crashes, v_old.delivery, v_old.timeout_s, v_old.key, v_old.catchup,
        v_old.catchup_window_s, v_old.catchup_limit, v_old.grace_s, v_old.overlap_runs,
        v_old.source
    ) IS NOT DISTINCT FROM (
        v_new.kind, v_new.args, v_new.queue, v_new.priority, v_new.max_retries,
        v_new.max_crashes, v_new.delivery, v_new.timeout_s, v_new.key, v_new.catchup,
        v_new.catchup_window_s, v_new.catchup_limit, v_new.grace_s, v_new.overlap_runs,
        v_new.source
    ) THEN
        RETURN v_old.id;
    END IF;

    UPDATE timeball.schedule SET kind = v_new.kind, expression = v_new.expression, tz = v_new.tz,
        gap = v_new.gap, overlap = v_new.overlap, terms = v_new.terms, args = v_new.args,
        queue = v_new.queue, priority = v_new.priority, max_retries = v_new.max_retries,
        max_crashes = v_new.max_crashes, delivery = v_new.delivery, timeout_s = v_new.timeout_s,
        key = v_new.key,
        catchup = v_new.catchup, catchup_window_s = v_new.catchup_window_s,
        catchup_limit = v_new.catchup_limit, grace_s = v_new.grace_s,
        overlap_runs = v_new.overlap_runs, source = v_new.source,
        revision = v_old.revision + 1, error = NULL,
        state = CASE WHEN v_old.state = 'paused' THEN 'paused' ELSE 'active' END
    WHERE schedule.id = v_old.id;
    IF v_moved THEN
        UPDATE timeball.schedule SET active_from = v_new.cursor_at, cursor_at = v_new.cursor_at,
            next_at = v_new.next_at, due_at = v_new.due_at, zone_version = v_new.zone_version,
            fingerprint = v_new.fingerprint, offset_s = v_new.offset_s, fired = 0
        WHERE schedule.id = v_old.id;
    END IF;
    RETURN v_old.id;
END
$function$;
