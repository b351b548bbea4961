-- Return every queue, by name, and where counting its jobs ended: the more queues there are, the
-- earlier. See the function.
SELECT seen.*, counting.most
FROM (
    SELECT greatest(100, least(%(most)s, %(budget)s / greatest(1, count(*)::integer))) AS most
    FROM timeball.lane
) AS counting
CROSS JOIN LATERAL timeball.view_queues(counting.most) AS seen
ORDER BY seen.name COLLATE "C";
