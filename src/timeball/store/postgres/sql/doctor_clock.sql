-- Return the instant at which the server answers, as epoch seconds.
SELECT extract(epoch FROM clock_timestamp())::double precision;
