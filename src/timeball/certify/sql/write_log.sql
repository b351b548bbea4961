-- Have a megabyte more in the log of the server, and nowhere else.
SELECT pg_logical_emit_message(true, 'certify', repeat('x', 1000000));
