-- event: due (scheduled -> pending)
-- Move scheduled jobs that have fallen due to the back of their lanes; see the function.
SELECT o_moved, o_next_due_s, o_after, o_rated, o_lined FROM timeball.promote(%(limit)s, %(after)s);
