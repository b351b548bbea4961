-- Note what became of earlier grants, then grant permits to start in the order of the asks, as far
-- as every limit that an ask names has room now or soon; return when that was, what each ask got and
-- from when on, and how long until one of the limits can give more.
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
    v_permits timeball.permit[];
    v_rates timeball.limiter[];
    v_permit timeball.permit;
    v_rate timeball.limiter;
    v_spent record;
    v_ask record;
    v_place integer;
    v_left integer;
    v_ahead boolean;
    v_parts jsonb;
    v_at bigint;
    v_n integer;
    v_ids bigint[];
    v_granted jsonb := '[]';
    v_wait bigint;
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
    -- Reckoned with here, and written once: each look at a rate, and each version of a row, costs.
    SELECT array_agg(permit ORDER BY permit.name COLLATE "C"),
        array_agg(rate ORDER BY permit.name COLLATE "C")
    INTO v_permits, v_rates
    FROM timeball.permit LEFT JOIN LATERAL timeball.rate_of(permit.name) AS rate ON true
    WHERE permit.name = ANY (v_names);

    FOR v_spent IN
        SELECT array_position(v_names, spent.name) AS place, spent.number, spent.used, spent.late_us
        FROM jsonb_to_recordset(p_spent)
            AS spent (name text, number bigint, used integer, late_us bigint)
    LOOP
        CONTINUE WHEN v_rates[v_spent.place] IS NULL;
        v_permits[v_spent.place] := timeball.permit_spend(v_permits[v_spent.place],
            v_rates[v_spent.place], v_spent.number, v_spent.used, v_spent.late_us);
    END LOOP;

    FOR v_ask IN
        SELECT array(
                SELECT array_position(v_names, u.name)
                FROM unnest(ask.names) WITH ORDINALITY AS u (name, n) ORDER BY u.n
            ) AS places, ask.want, ask.waited
        FROM ROWS FROM (jsonb_to_recordset(p_asks) AS (names text[], want integer, waited boolean))
            WITH ORDINALITY AS ask (names, want, waited, place)
        ORDER BY ask.place
    LOOP
        v_left := v_ask.want;
        v_ahead := true;
        FOREACH v_place IN ARRAY v_ask.places LOOP
            v_permit := v_permits[v_place];
            IF v_ask.waited AND v_permit.coming > 0 THEN
                v_permit.coming := greatest(0, v_permit.coming - v_ask.want);
                v_permits[v_place] := v_permit;
            END IF;
            CONTINUE WHEN v_rates[v_place] IS NULL;
            v_rate := v_rates[v_place];
            v_ahead := v_ahead AND v_rate.burst IS NULL;
        END LOOP;
        v_parts := '[]';
        -- What opens at different instants comes in parts: none has to wait for the next.
        FOR v_part IN 1..16 LOOP
            v_at := v_now;
            v_n := v_left;
            FOREACH v_place IN ARRAY v_ask.places LOOP
                CONTINUE WHEN v_n = 0 OR v_rates[v_place] IS NULL;
                SELECT greatest(v_at, offer.o_at), least(v_n, offer.o_n) INTO v_at, v_n
                FROM timeball.permit_offer(
                    v_permits[v_place], v_rates[v_place], v_now, v_left, v_ahead) AS offer;
            END LOOP;
            EXIT WHEN v_n = 0;
            v_ids := '{}';
            FOREACH v_place IN ARRAY v_ask.places LOOP
                IF v_rates[v_place] IS NULL THEN
                    v_ids := v_ids || 0::bigint;
                    CONTINUE;
                END IF;
                v_permit := timeball.permit_take(
                    v_permits[v_place], v_rates[v_place], v_now, v_at, v_n);
                v_permits[v_place] := v_permit;
                v_ids := v_ids || v_permit.last;
            END LOOP;
            v_parts := v_parts || jsonb_build_object(
                'permits', v_n, 'numbers', v_ids, 'wait_s', (v_at - v_now) / 1000000.0);
            v_left := v_left - v_n;
        END LOOP;
        v_granted := v_granted || jsonb_build_array(v_parts);
    END LOOP;

    FOR v_place IN 1..v_locked LOOP
        CONTINUE WHEN v_rates[v_place] IS NULL;
        v_permit := v_permits[v_place];
        v_permit.patience_s := 1;
        v_permit.coming_until := least(v_permit.coming_until, v_now + 1000000);
        v_permit.opens_us := timeball.permit_soon(v_permit, v_rates[v_place], v_now);
        v_wait := least(v_wait, v_permit.opens_us - v_now);
        UPDATE timeball.permit
        SET ids = v_permit.ids, untils = v_permit.untils, counts = v_permit.counts,
            last = v_permit.last, newest_us = v_permit.newest_us,
            bucket_full = v_permit.bucket_full, opens_us = v_permit.opens_us,
            coming = v_permit.coming, coming_until = v_permit.coming_until, patience_s = 1
        WHERE permit.name = v_permit.name;
    END LOOP;
    RETURN jsonb_build_object('at', v_now / 1000000.0, 'wait_s', v_wait / 1000000.0,
        'granted', v_granted);
END
$function$;
