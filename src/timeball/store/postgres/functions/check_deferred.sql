-- Carry out what was put off until the commit: deferred constraints and triggers. That may wait for
-- anybody, or take long; it must not do so while this transaction holds what others need.
CREATE OR REPLACE FUNCTION timeball.check_deferred() RETURNS void LANGUAGE plpgsql
AS $function$
BEGIN
    SET CONSTRAINTS ALL IMMEDIATE;
END
$function$;
