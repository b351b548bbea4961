-- Look at the next p_limit rows of permits of which nobody has asked for a day, and delete those that
-- are as good as new: of keys that are used no longer. Returns where the next look goes on; null
-- where all have been looked at.
--
-- Rows that somebody is at are left to him; he who waits for one that goes makes it anew.
CREATE OR REPLACE FUNCTION timeball.trim_permits(p_after bigint, p_limit integer) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_now bigint := extract(epoch FROM timeball.clock()) * 1000000;
    v_old bigint := v_now - 86400000000;
    v_names text[];
    v_last bigint;
BEGIN
    SELECT array_agg(page.name), max(page.opens_us) INTO v_names, v_last
    FROM (
        SELECT permit.name, permit.opens_us FROM timeball.permit
        WHERE permit.opens_us > p_after AND permit.opens_us <= v_old
        ORDER BY permit.opens_us LIMIT p_limit
    ) AS page;
    WITH idle AS MATERIALIZED (
        SELECT permit.name FROM timeball.permit
        LEFT JOIN LATERAL timeball.rate_of(permit.name) AS rate ON true
        WHERE permit.name = ANY (v_names)
          AND permit.newest_us + coalesce(rate.window_us, 0) <= v_old
          AND (rate.scope IS NULL
            OR timeball.permit_full(permit, rate) <= v_now::numeric * rate.starts)
        ORDER BY permit.name COLLATE "C"
        FOR UPDATE OF permit SKIP LOCKED
    )
    DELETE FROM timeball.permit WHERE permit.name IN (SELECT idle.name FROM idle);
    RETURN CASE WHEN cardinality(v_names) = p_limit THEN v_last END;
END
$function$;
