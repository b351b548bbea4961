-- Delete a few jobs that ended long ago; see the function.
SELECT o_deleted, o_after
FROM timeball.trim_jobs(
    %(after)s, %(limit)s, %(succeeded_s)s::double precision, %(others_s)s::double precision);
