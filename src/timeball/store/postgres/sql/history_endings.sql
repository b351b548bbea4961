-- Stream every ended turn, by job and turn.
SELECT ended.job_id, ended.turn, ended.event, ended.reason, ended.worker,
    extract(epoch FROM ended.began_at)::double precision, coalesce(ended.ran_s, 0),
    extract(epoch FROM ended.at)::double precision
FROM timeball.ended WHERE ended.job_id >= %(first)s
ORDER BY ended.job_id, ended.turn;
