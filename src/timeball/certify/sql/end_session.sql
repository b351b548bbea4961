-- End a session at whatever it is doing.
SELECT pg_terminate_backend(%(pid)s, 30000);
