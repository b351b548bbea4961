-- Stream every entry, by job and turn.
SELECT entry.job_id, entry.turn, extract(epoch FROM entry.at)::double precision
FROM timeball.entry WHERE entry.job_id >= %(first)s
ORDER BY entry.job_id, entry.turn;
