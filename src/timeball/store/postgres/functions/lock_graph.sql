-- Take the graph lock alone until the end of the transaction, and return whether that was
-- possible within a tenth of a second.
CREATE OR REPLACE FUNCTION timeball.lock_graph() RETURNS boolean LANGUAGE plpgsql
SET lock_timeout = '100ms'
AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock('timeball.dependency'::regclass::oid::integer, 0);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$function$;
