-- The server's own clock, now.
SELECT clock_timestamp();
