-- Return whether a batch has an undecided edge that nobody has in his hands; then one such edge is
-- locked, so that it is decided only after this transaction has ended. Not always the same one: who
-- is to decide it would wait for one transaction after the other.
CREATE OR REPLACE FUNCTION timeball.is_left(p_batch bigint) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
DECLARE
    v_last bigint[];
BEGIN
    v_last := array(
        SELECT edge.parent FROM timeball.dependency AS edge
        WHERE edge.child = p_batch AND edge.joins AND edge.decided_at IS NULL
        ORDER BY edge.parent DESC LIMIT 64);
    IF v_last = '{}' THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM timeball.dependency AS edge
    WHERE edge.child = p_batch AND edge.joins AND edge.decided_at IS NULL
      AND edge.parent = v_last[1 + pg_backend_pid() % cardinality(v_last)]
    FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        PERFORM 1 FROM timeball.dependency AS edge
        WHERE edge.child = p_batch AND edge.joins AND edge.decided_at IS NULL
        ORDER BY edge.parent DESC LIMIT 1
        FOR SHARE SKIP LOCKED;
    END IF;
    RETURN FOUND;
END
$function$;
