DO $$ DECLARE v_function regprocedure; BEGIN
    FOR v_function IN SELECT oid FROM pg_proc
        WHERE pronamespace = '{schema}'::regnamespace AND proname = '{function}'
    LOOP EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {roles}', v_function);
    END LOOP;
END $$;
