-- Return how many jobs of some queues wait, up to a bound, and for how long; see the function.
SELECT queue, state, jobs, oldest_s FROM timeball.depths(%(queues)s::text[], %(most)s);
