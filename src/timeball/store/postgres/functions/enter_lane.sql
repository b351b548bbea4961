-- Take the lock of a lane for the pending turn of a job, and return whether it is still its newest
-- one; where it has ended or moved on meanwhile, the lock is given back at once, so that nobody
-- who looks again waits for a lane while he holds another.
CREATE OR REPLACE FUNCTION timeball.enter_lane(p_job bigint, p_turn integer, p_lane integer)
RETURNS boolean LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, p_lane);
    IF NOT EXISTS (
        SELECT FROM timeball.latest_entry(p_job) AS latest
        WHERE latest.turn = p_turn AND latest.lane = p_lane)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'TB007';
    END IF;
    RETURN true;
EXCEPTION WHEN SQLSTATE 'TB007' THEN
    RETURN false;
END
$function$;
