-- Add a schedule or change the one of that name; see the function.
SELECT timeball.declare_schedule(%(spec)s::jsonb, %(standing)s::jsonb);
