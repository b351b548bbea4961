-- Return whether the ledger is on the server and timeline that it was last seen on; true on a
-- standby, which writes nothing anyway. Costs 10 us: the server's control file is read.
-- Plan: kept by the session, where a function in SQL is planned anew in every claim.
CREATE OR REPLACE FUNCTION timeball.at_home() RETURNS boolean LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN pg_is_in_recovery() OR (
        SELECT home.system = (SELECT system_identifier FROM pg_control_system())
            AND home.timeline
                = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
        FROM timeball.home WHERE home.id);
END
$function$;
