-- Set how many of a queue, a kind or a key may start in a time; it holds 1.2 seconds from now on,
-- when all who ask know of it and earlier permits have run out.
INSERT INTO timeball.limiter (scope, name, starts, window_us, burst, spread, since)
VALUES (%(scope)s, %(name)s, %(starts)s, %(window_us)s, %(burst)s, %(spread)s,
    timeball.clock() + interval '1.2 seconds')
ON CONFLICT (scope, name) DO UPDATE SET starts = excluded.starts, window_us = excluded.window_us,
    burst = excluded.burst, spread = excluded.spread, since = excluded.since;
