-- Return the kinds that no worker knows and that jobs wait for, with how many of so many there are.
SELECT one.kind, count(*)
FROM (
    SELECT held.kind FROM timeball.held WHERE held.reason = 'no_worker'
    ORDER BY held.kind, held.job_id LIMIT %(most)s
) AS one
GROUP BY one.kind ORDER BY count(*) DESC, one.kind;
