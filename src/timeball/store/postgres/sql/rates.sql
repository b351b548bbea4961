-- Return every limit on starts, and since when it has held.
SELECT limiter.scope, limiter.name, extract(epoch FROM limiter.since)::double precision,
    limiter.starts, limiter.window_us, limiter.burst, limiter.spread
FROM timeball.limiter
WHERE limiter.starts IS NOT NULL ORDER BY limiter.scope, limiter.name COLLATE "C";
