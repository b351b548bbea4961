-- Wake workers that wait for these queues. Never needed: polling is the guarantee.
SELECT pg_notify(%(channel)s, u.queue) FROM unnest(%(queues)s::text[]) AS u (queue);
