-- Record decisions about occurrences, add their jobs and move the cursors; see the function.
SELECT n, jobs FROM timeball.fire(%(firings)s::jsonb, %(decisions)s::jsonb, %(jobs)s::jsonb);
