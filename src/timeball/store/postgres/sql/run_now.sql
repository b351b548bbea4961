-- Add one extra job of a schedule; see the function.
SELECT * FROM timeball.run_now(%(schedule)s, %(jobs)s::jsonb);
