-- Take the settings over.
SELECT pg_reload_conf();
