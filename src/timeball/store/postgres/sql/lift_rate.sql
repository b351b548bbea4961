-- Take away the limit of how many may start in a time.
WITH gone AS (
    DELETE FROM timeball.limiter
    WHERE limiter.name = %(name)s AND limiter.scope = %(scope)s AND limiter.at_once IS NULL
)
UPDATE timeball.limiter
SET starts = NULL, window_us = NULL, burst = NULL, spread = false, since = NULL
WHERE limiter.name = %(name)s AND limiter.scope = %(scope)s AND limiter.at_once IS NOT NULL;
