-- A role that nobody can log in as: its rights go to those who are granted it.
DO $$ BEGIN IF to_regrole('{role}') IS NULL THEN CREATE ROLE {role} NOLOGIN; END IF; END $$;
