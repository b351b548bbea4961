-- Of a name there may be two for a while: that which an older program calls, and its successor.
DO $$ DECLARE v_verb regprocedure; BEGIN
    FOR v_verb IN SELECT oid FROM pg_proc
        WHERE pronamespace = '{schema}'::regnamespace AND proname = '{verb}'
    LOOP EXECUTE format(
        'ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', v_verb);
    END LOOP;
END $$;
