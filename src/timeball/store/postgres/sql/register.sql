-- Add a worker and return its id; see the function.
SELECT timeball.register(%(name)s, %(kinds)s::text[], %(queues)s::text[], %(lease_s)s);
