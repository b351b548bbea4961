-- Delete rows of permits that nobody needs; see the function.
SELECT timeball.trim_permits(%(after)s, %(limit)s);
