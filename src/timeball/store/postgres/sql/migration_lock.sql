-- Return whether nobody else migrates now, nor will as long as this transaction lasts. Who waited
-- here in the server would have a snapshot: an index that is being built would wait for him.
SELECT pg_try_advisory_xact_lock(8388358978346380396);
