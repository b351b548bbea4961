-- Make the lane of a queue and priority class where it is missing, and return its id.
-- Runs in a transaction of its own: an uncommitted lane would block others.
CREATE OR REPLACE FUNCTION timeball.ensure_lane(p_queue text, p_priority integer)
RETURNS integer LANGUAGE sql
AS $function$
-- Asked first, for each conflict would use up a number of the sequence.
INSERT INTO timeball.lane (queue, priority)
SELECT p_queue, p_priority
WHERE NOT EXISTS (
    SELECT FROM timeball.lane WHERE lane.queue = p_queue AND lane.priority = p_priority)
ON CONFLICT DO NOTHING;
SELECT lane.id FROM timeball.lane WHERE lane.queue = p_queue AND lane.priority = p_priority;
$function$;
