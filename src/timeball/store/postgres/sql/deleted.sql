-- Return how many jobs were ever deleted.
SELECT coalesce((SELECT deletion.jobs FROM timeball.deletion), 0);
