-- Add a schedule or change the one of that name, and return its id.
-- A new meaning (expression, zone, policy) and a return from retirement start at p_cursor; any
-- other change keeps the cursor, and takes the schedule out of an error. What is the same already is left alone.
CREATE OR REPLACE FUNCTION timeball.declare_schedule(
    p_spec jsonb, p_cursor timestamptz, p_next timestamptz
) RETURNS bigint LANGUAGE plpgsql
AS $function$
DECLARE
    v_new timeball.schedule%ROWTYPE;
    v_old timeball.schedule%ROWTYPE;
    v_id bigint;
    v_moved boolean;
BEGIN
    v_new := jsonb_populate_record(NULL::timeball.schedule, p_spec);
    INSERT INTO timeball.schedule (name, kind, expression, tz, gap, overlap, args, queue, priority,
        max_retries, timeout_s, catchup, source, active_from, cursor_at, next_at)
    VALUES (v_new.name, v_new.kind, v_new.expression, v_new.tz, v_new.gap, v_new.overlap,
        v_new.args, v_new.queue, v_new.priority, v_new.max_retries, v_new.timeout_s,
        v_new.catchup, v_new.source, p_cursor, p_cursor, p_next)
    ON CONFLICT (name) DO NOTHING
    RETURNING schedule.id INTO v_id;
    IF FOUND THEN
        RETURN v_id;
    END IF;

    SELECT * INTO v_old FROM timeball.schedule WHERE schedule.name = v_new.name FOR UPDATE;
    v_moved := (v_old.expression, v_old.tz, v_old.gap, v_old.overlap)
        IS DISTINCT FROM (v_new.expression, v_new.tz, v_new.gap, v_new.overlap)
        OR v_old.state = 'retired';
    UPDATE timeball.schedule SET kind = v_new.kind, expression = v_new.expression, tz = v_new.tz,
        gap = v_new.gap, overlap = v_new.overlap, args = v_new.args, queue = v_new.queue,
        priority = v_new.priority, max_retries = v_new.max_retries,
        timeout_s = v_new.timeout_s, catchup = v_new.catchup, source = v_new.source,
        revision = v_old.revision + 1, error = NULL,
        state = CASE WHEN v_old.state = 'paused' THEN 'paused' ELSE 'active' END,
        active_from = CASE WHEN v_moved THEN p_cursor ELSE v_old.active_from END,
        cursor_at = CASE WHEN v_moved THEN p_cursor ELSE v_old.cursor_at END,
        next_at = CASE WHEN v_moved THEN p_next ELSE v_old.next_at END
    WHERE schedule.id = v_old.id AND (
        v_moved OR v_old.state = 'error' OR (kind, args, queue, priority, max_retries, timeout_s, catchup, source)
        IS DISTINCT FROM (v_new.kind, v_new.args, v_new.queue, v_new.priority,
            v_new.max_retries, v_new.timeout_s, v_new.catchup, v_new.source));
    RETURN v_old.id;
END
$function$;
