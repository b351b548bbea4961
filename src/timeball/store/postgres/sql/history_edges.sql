-- Stream every edge, by child: what it waited for, what was decided, and how the parent ended.
SELECT edge.child, edge.parent, edge.rule, extract(epoch FROM edge.linked_at)::double precision,
    extract(epoch FROM edge.decided_at)::double precision, edge.met, job.id IS NOT NULL AS known,
    timeball.has_ended(edge.parent) AS ended,
    array(
        SELECT ended.event FROM timeball.ended
        WHERE ended.job_id = edge.parent
          AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
        ORDER BY ended.turn) AS events,
    array(
        SELECT extract(epoch FROM ended.at)::double precision FROM timeball.ended
        WHERE ended.job_id = edge.parent
          AND ended.event IN ('succeeded', 'failed', 'cancelled', 'skipped', 'expired')
        ORDER BY ended.turn) AS instants,
    edge.spawned, edge.added
FROM timeball.dependency AS edge
LEFT JOIN timeball.job ON job.id = edge.parent
WHERE edge.child >= %(first)s
ORDER BY edge.child, edge.parent;
