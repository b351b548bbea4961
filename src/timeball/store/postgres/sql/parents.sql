-- Return the parents of a job with their states and results, in the order of their ids.
SELECT edge.parent_uuid, edge.rule, jobs.state, jobs.result::text
FROM timeball.dependency AS edge
LEFT JOIN timeball.jobs ON jobs.id = edge.parent
WHERE edge.child = %(job)s AND NOT edge.spawned
ORDER BY edge.parent;
