-- Keep what all tables hold, so that it can be put back, and have them read as lines.
CREATE SCHEMA certify_scene;
DO $do$
DECLARE
    v_table text;
BEGIN
    FOR v_table IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'timeball' AND tablename <> 'migration' LOOP
        EXECUTE format('CREATE TABLE certify_scene.%I AS TABLE timeball.%I', v_table, v_table);
    END LOOP;
END $do$;
CREATE FUNCTION certify_scene.put_back() RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    v_table text;
BEGIN
    FOR v_table IN SELECT tablename FROM pg_tables WHERE schemaname = 'certify_scene' LOOP
        EXECUTE format('DELETE FROM timeball.%I', v_table);
        EXECUTE format('INSERT INTO timeball.%I OVERRIDING SYSTEM VALUE TABLE certify_scene.%I',
            v_table, v_table);
    END LOOP;
END $function$;
CREATE FUNCTION certify_scene.lines() RETURNS TABLE (name text, line jsonb)
LANGUAGE plpgsql AS $function$
DECLARE
    v_table text;
BEGIN
    FOR v_table IN SELECT tablename FROM pg_tables WHERE schemaname = 'certify_scene' LOOP
        RETURN QUERY EXECUTE
            format('SELECT %L, to_jsonb(held) FROM timeball.%I AS held', v_table, v_table);
    END LOOP;
END $function$;
