-- Return the jobs that are connected with one by what comes after what, the nearest first, up to so
-- many; of a batch that this is not about, no members. Each step is a probe of an index; children
-- that wait no longer are in none by their parent, and are looked for among the edges that follow.
WITH RECURSIVE near (id) AS (
    SELECT %(job)s::bigint
    UNION
    SELECT next.id FROM near
    CROSS JOIN LATERAL (
        SELECT edge.parent AS id FROM (
            SELECT * FROM timeball.dependency WHERE dependency.child = near.id
            ORDER BY dependency.child, dependency.parent LIMIT %(most)s
        ) AS edge
        WHERE edge.rule <> 'member' OR edge.child = %(job)s
        UNION ALL
        (SELECT open.child FROM timeball.dependency AS open
         WHERE open.parent = near.id AND open.decided_at IS NULL
         ORDER BY open.parent, open.child LIMIT %(most)s)
        UNION ALL
        (SELECT home.child FROM timeball.dependency AS home
         WHERE home.parent = near.id AND home.rule = 'member' LIMIT %(most)s)
        UNION ALL
        SELECT edge.child FROM (
            SELECT * FROM timeball.dependency WHERE dependency.child > near.id
            ORDER BY dependency.child, dependency.parent LIMIT %(window)s
        ) AS edge
        WHERE edge.parent = near.id AND NOT edge.spawned
    ) AS next
)
SELECT near.id FROM near LIMIT %(most)s;
