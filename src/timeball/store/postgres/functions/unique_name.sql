-- Return the row of `unique_key` that a key stands for within its scope: kind, queue or global.
CREATE OR REPLACE FUNCTION timeball.unique_name(
    p_key text, p_scope text, p_kind text, p_queue text
) RETURNS text LANGUAGE sql IMMUTABLE
AS $function$
SELECT CASE WHEN p_key IS NOT NULL THEN jsonb_build_array(p_scope,
    CASE p_scope WHEN 'kind' THEN p_kind WHEN 'queue' THEN p_queue ELSE '' END, p_key)::text END;
$function$;
