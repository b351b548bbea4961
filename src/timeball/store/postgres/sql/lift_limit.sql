-- Take away the limit of how many may be under way at once.
WITH gone AS (
    DELETE FROM timeball.limiter
    WHERE limiter.name = %(name)s AND limiter.scope = %(scope)s AND limiter.starts IS NULL
)
UPDATE timeball.limiter SET at_once = NULL
WHERE limiter.name = %(name)s AND limiter.scope = %(scope)s AND limiter.starts IS NOT NULL;
