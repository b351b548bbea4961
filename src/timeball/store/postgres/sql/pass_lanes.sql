-- Wait until every claim has ended that may not have seen what was committed about its queue.
-- Each asks under its lane's lock; in the order in which others take several of them.
SELECT pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, lane.id)
FROM (
    SELECT lane.id FROM timeball.lane WHERE lane.queue = %(queue)s
    ORDER BY lane.priority DESC, lane.id OFFSET 0
) AS lane;
