-- Return how many jobs are held in each state, up to so many in all.
SELECT first.state, count(*)
FROM (SELECT held.state FROM timeball.held LIMIT %(most)s) AS first
GROUP BY first.state;
