-- Take the graph lock, together with others who end jobs, until the end of the transaction: before
-- any row that `link` may want, and before the ending is written.
CREATE OR REPLACE FUNCTION timeball.share_graph() RETURNS void LANGUAGE sql
BEGIN ATOMIC
    SELECT pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);
END;
