-- Note what became of earlier grants, then grant permits to start in the order of the asks, as far
-- as every limit that an ask names has room; return when that was, what each ask got, and how long
-- until one of the limits can give more.
--
-- The rows of the limits are locked in the order of their names, and nothing else is: this runs
-- alone in a short transaction of its own, never in that of a claim.
CREATE OR REPLACE FUNCTION timeball.permits(p_asks jsonb, p_spent jsonb) RETURNS jsonb
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_names text[];
    v_locked integer;
    v_now bigint;
    v_rate timeball.limiter;
    v_permit timeball.permit;
    v_ask record;
    v_spent record;
    v_name text;
    v_room bigint;
    v_ids bigint[];
    v_granted jsonb := '[]';
    v_wait bigint;
    v_opens bigint;
BEGIN
    PERFORM timeball.durable();
    SELECT coalesce(array_agg(named.name ORDER BY named.name), '{}') INTO v_names
    FROM (
        SELECT jsonb_array_elements_text(ask.value -> 'names') COLLATE "C" AS name
        FROM jsonb_array_elements(p_asks) AS ask
        UNION
        SELECT spent.value ->> 'name' FROM jsonb_array_elements(p_spent) AS spent
    ) AS named;
    LOOP
        INSERT INTO timeball.permit (name)
        SELECT u.name FROM unnest(v_names) AS u (name)
        WHERE NOT EXISTS (SELECT FROM timeball.permit WHERE permit.name = u.name)
        ORDER BY u.name COLLATE "C"
        ON CONFLICT DO NOTHING;
        PERFORM FROM timeball.permit WHERE permit.name = ANY (v_names)
        ORDER BY permit.name COLLATE "C" FOR UPDATE;
        GET DIAGNOSTICS v_locked = ROW_COUNT;
        EXIT WHEN v_locked = cardinality(v_names);  -- else one was idle for long, and has just gone
    END LOOP;
    v_now := extract(epoch FROM timeball.clock()) * 1000000;

    FOR v_spent IN
        SELECT * FROM jsonb_to_recordset(p_spent)
            AS spent (name text, number bigint, used integer, late_us bigint)
    LOOP
        SELECT * INTO v_rate FROM timeball.rate_of(v_spent.name);
        CONTINUE WHEN NOT FOUND;
        UPDATE timeball.permit
        SET (ids, untils, counts, bucket_full) = (
            SELECT after.ids, after.untils, after.counts, after.bucket_full
            FROM timeball.permit_spend(
                permit, v_rate, v_spent.number, v_spent.used, v_spent.late_us) AS after)
        WHERE permit.name = v_spent.name;
    END LOOP;

    FOR v_ask IN
        SELECT ask.names, ask.want, ask.waited
        FROM ROWS FROM (jsonb_to_recordset(p_asks) AS (names text[], want integer, waited boolean))
            WITH ORDINALITY AS ask (names, want, waited, place)
        ORDER BY ask.place
    LOOP
        v_room := v_ask.want;
        FOREACH v_name IN ARRAY v_ask.names LOOP
            SELECT * INTO v_rate FROM timeball.rate_of(v_name);
            CONTINUE WHEN NOT FOUND;
            SELECT * INTO v_permit FROM timeball.permit WHERE permit.name = v_name;
            v_room := least(v_room, timeball.permit_room(v_permit, v_rate, v_now));
            IF NOT v_ask.waited AND EXISTS (
                SELECT FROM timeball.held
                WHERE held.line = v_name AND held.lane = ANY (timeball.open_lanes())
            ) THEN
                v_room := 0;
            END IF;
        END LOOP;
        v_ids := '{}';
        FOREACH v_name IN ARRAY v_ask.names LOOP
            SELECT * INTO v_rate FROM timeball.rate_of(v_name);
            IF NOT FOUND OR v_room = 0 THEN
                v_ids := v_ids || 0::bigint;
                CONTINUE;
            END IF;
            UPDATE timeball.permit
            SET (ids, untils, counts, bucket_full, last, newest_us) = (
                SELECT after.ids, after.untils, after.counts, after.bucket_full, after.last,
                    after.newest_us
                FROM timeball.permit_take(permit, v_rate, v_now, v_room::integer) AS after)
            WHERE permit.name = v_name
            RETURNING v_ids || permit.last INTO v_ids;
        END LOOP;
        v_granted := v_granted || jsonb_build_object('permits', v_room, 'numbers', v_ids);
    END LOOP;

    FOREACH v_name IN ARRAY v_names LOOP
        SELECT * INTO v_rate FROM timeball.rate_of(v_name);
        CONTINUE WHEN NOT FOUND;
        UPDATE timeball.permit
        SET opens_us = timeball.permit_opens(permit, v_rate, v_now), patience_s = 1
        WHERE permit.name = v_name
        RETURNING permit.opens_us INTO v_opens;
        v_wait := least(v_wait, v_opens - v_now);
    END LOOP;
    RETURN jsonb_build_object('at', v_now / 1000000.0, 'wait_s', v_wait / 1000000.0,
        'granted', v_granted);
END
$function$;
