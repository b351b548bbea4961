-- Make the lanes of some queues and priority classes where they are missing.
SELECT timeball.ensure_lane(u.queue, u.priority)
FROM unnest(%(queues)s::text[], %(priorities)s::integer[]) AS u (queue, priority)
ORDER BY u.queue, u.priority;
