-- Stream cancel requests, revivals, stale settlements and snoozes by operators, by job; a snooze
-- with the instant until which the turn is put off.
SELECT event.job_id, event.kind, event.turn, event.worker,
    extract(epoch FROM CASE WHEN event.kind = 'snoozed' THEN event.detail::timestamptz
        ELSE event.at END)::double precision
FROM timeball.event
WHERE event.kind IN ('cancel_requested', 'stale_settlement', 'revived', 'snoozed')
  AND event.job_id >= %(first)s
ORDER BY event.job_id, event.id;
