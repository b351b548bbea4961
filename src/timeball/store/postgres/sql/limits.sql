-- Return every limit with how many jobs count against it; of a name with *, of all its keys.
SELECT limiter.scope, limiter.name, limiter.at_once, (
    SELECT count(*) FROM timeball.slot
    WHERE slot.scope = limiter.scope AND (slot.name = limiter.name
        OR limiter.scope = 'key' AND limiter.name LIKE '%%*'
        AND starts_with(slot.name, left(limiter.name, -1))))
FROM timeball.limiter ORDER BY limiter.scope, limiter.name COLLATE "C";
