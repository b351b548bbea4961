-- event: call (waiting -> succeeded)
-- End a callback with what was said to it; see the function.
SELECT * FROM timeball.call_back(%(callback)s, %(result)s::jsonb);
