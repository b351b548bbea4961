-- Tell which of the server's processes answers.
SELECT pg_backend_pid();
