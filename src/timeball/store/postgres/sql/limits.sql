-- Return every limit with how many jobs count against it (of a name with *, of all its keys) and
-- its rate.
SELECT limiter.scope, limiter.name, limiter.at_once, CASE WHEN limiter.at_once IS NULL THEN 0 ELSE (
    SELECT count(*) FROM timeball.slot
    WHERE slot.scope = limiter.scope AND (slot.name = limiter.name
        OR limiter.scope = 'key' AND limiter.name LIKE '%%*'
        AND starts_with(slot.name, left(limiter.name, -1)))) END,
    limiter.starts, limiter.window_us, limiter.burst, limiter.spread
FROM timeball.limiter ORDER BY limiter.scope, limiter.name COLLATE "C";
