-- Have a job that waits wait for more; return added, refused, not_found or busy. See the function.
SELECT timeball.add_edges(%(job)s, %(after)s::jsonb);
