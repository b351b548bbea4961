-- event: move (pending -> pending)
-- End the pending turn of a job whose lane is locked, and let the next one enter another lane. It
-- takes along its counts, its deadline, the slot of its key and how long it has waited for a rate,
-- and goes to the back.
CREATE OR REPLACE FUNCTION timeball.change_lane(
    p_job bigint, p_turn integer, p_from integer, p_xid xid8, p_to integer
) RETURNS void LANGUAGE sql
SET enable_seqscan = off
AS $function$
INSERT INTO timeball.ended (job_id, turn, event, reason)
VALUES (p_job, p_turn, 'moved', 'requested');
INSERT INTO timeball.entry
    (lane, job_id, turn, attempts, failures, crashes, delay_s, expires_at, at_once,
        lined_at)
SELECT p_to, entry.job_id, p_turn + 1, coalesce(entry.attempts, 0), coalesce(entry.failures, 0),
    coalesce(entry.crashes, 0), coalesce(entry.delay_s, 0), entry.expires_at, entry.at_once,
    entry.lined_at
FROM timeball.entry
WHERE entry.lane = p_from AND entry.xid = p_xid AND entry.job_id = p_job;
-- The decision takes a place in the lane's order, like a claim.
INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
SELECT lane, seq + 1, prev, cur, pos_xid, pos_id, '{}', '{}'
FROM timeball.lease WHERE lane = p_from ORDER BY seq DESC LIMIT 1;
$function$;
