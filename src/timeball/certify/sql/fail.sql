-- Fail as a statement does that met another one.
DO $$BEGIN RAISE EXCEPTION 'certify has this statement fail' USING ERRCODE = '{code}'; END$$;
