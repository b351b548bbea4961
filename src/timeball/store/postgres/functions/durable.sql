-- Make the commit of this transaction durable whatever the database's default: what was
-- granted, settled or accepted must not be forgotten by a crash of the server.
CREATE OR REPLACE FUNCTION timeball.durable() RETURNS void LANGUAGE plpgsql
AS $function$
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$function$;
