-- Grant permits from an instant on at which there is room for them, now or later, and return the row
-- as it is then, without the grants that do not count any more. See core/permits.py, which says the
-- same.
CREATE OR REPLACE FUNCTION timeball.permit_take(
    p_permit timeball.permit, p_rate timeball.limiter, p_now bigint, p_at bigint, p_n integer
) RETURNS timeball.permit LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_new timeball.permit := p_permit;
    v_over timeball.permit := p_permit;
BEGIN
    IF p_rate.burst IS NOT NULL THEN
        SELECT array_agg(u.until), array_agg(u.n) INTO v_over.untils, v_over.counts
        FROM unnest(p_permit.ids, p_permit.untils, p_permit.counts) AS u (id, until, n)
        WHERE u.id = 0 OR u.until <= p_now;
        v_new.bucket_full := timeball.permit_full(v_over, p_rate);
    END IF;
    SELECT coalesce(array_agg(kept.id), '{}'), coalesce(array_agg(kept.until), '{}'),
        coalesce(array_agg(kept.n), '{}')
    INTO v_new.ids, v_new.untils, v_new.counts
    FROM (
        SELECT u.id, u.until, sum(u.n)::integer AS n
        FROM unnest(p_permit.ids, p_permit.untils, p_permit.counts) AS u (id, until, n)
        WHERE CASE WHEN p_rate.burst IS NULL THEN u.until + p_rate.window_us > p_now
            ELSE u.id <> 0 AND u.until > p_now END
        GROUP BY u.id, u.until
    ) AS kept;
    v_new.last := greatest(v_new.last + 1, p_now);  -- never again, though the row be deleted
    v_new.newest_us := p_now;
    v_new.ids := v_new.ids || v_new.last;
    v_new.untils := v_new.untils || (p_at + 1001000
        + CASE WHEN p_rate.burst IS NULL THEN least(20000, p_rate.window_us / 50) ELSE 0 END);
    v_new.counts := v_new.counts || p_n;
    IF p_rate.spread THEN
        v_new.bucket_full := greatest(timeball.permit_full(p_permit, p_rate),
            p_at::numeric * p_rate.starts) + p_n::numeric * p_rate.window_us;
    END IF;
    RETURN v_new;
END
$function$;
