-- Have a standby be a primary; whether it is one within a minute.
SELECT pg_promote(true, 60);
