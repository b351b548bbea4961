-- Take a limit away.
DELETE FROM timeball.limiter WHERE limiter.scope = %(scope)s AND limiter.name = %(name)s;
