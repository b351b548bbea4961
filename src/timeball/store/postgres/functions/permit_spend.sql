-- Note how the permits of a grant were used and return the row as it is then; the same where that
-- is known already. See core/permits.py, which says the same.
CREATE OR REPLACE FUNCTION timeball.permit_spend(
    p_permit timeball.permit, p_rate timeball.limiter, p_id bigint, p_used integer, p_late_us bigint
) RETURNS timeball.permit LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_place integer := array_position(p_permit.ids, p_id);
    v_until bigint;
    v_grain bigint := p_rate.window_us / 512 + 1;
BEGIN
    IF v_place IS NULL OR p_id = 0 THEN
        RETURN p_permit;
    END IF;
    IF p_rate.spread THEN
        p_permit.bucket_full := p_permit.bucket_full
            - (p_permit.counts[v_place] - p_used)::numeric * p_rate.window_us;
    END IF;
    v_until := p_permit.untils[v_place] - 1000000 + least(p_late_us, 1000000);
    IF p_rate.burst IS NULL THEN
        v_until := (v_until + v_grain - 1) / v_grain * v_grain;
    END IF;
    p_permit.ids[v_place] := 0;
    p_permit.untils[v_place] := v_until;
    p_permit.counts[v_place] := p_used;
    RETURN p_permit;
END
$function$;
