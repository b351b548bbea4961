-- Return which of these running turns were asked to stop; by the index of the requests.
SELECT event.job_id, event.turn
FROM timeball.event
WHERE event.kind = 'cancel_requested'
  AND event.job_id = ANY (%(job_ids)s::bigint[])
ORDER BY event.job_id, event.turn;
