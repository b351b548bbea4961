-- How many jobs are due, and not promoted yet.
SELECT count(*) FROM timeball.held
WHERE held.state = 'scheduled' AND held.run_at <= timeball.now();
