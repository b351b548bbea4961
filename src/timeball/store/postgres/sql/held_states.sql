-- Return of so many of the newest jobs that are held how many are in each state.
SELECT first.state, count(*)
FROM (SELECT held.state FROM timeball.held ORDER BY held.job_id DESC LIMIT %(most)s) AS first
GROUP BY first.state;
