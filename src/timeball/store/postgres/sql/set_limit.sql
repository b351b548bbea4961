-- Set how many jobs of a queue or a key may be under way at once.
INSERT INTO timeball.limiter (scope, name, at_once) VALUES (%(scope)s, %(name)s, %(at_once)s)
ON CONFLICT (scope, name) DO UPDATE SET at_once = excluded.at_once;
