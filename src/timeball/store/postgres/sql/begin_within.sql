-- Return the id of the transaction that a job writes in. A transaction that has exported a
-- snapshot cannot be prepared for a two-phase commit, which would take it out of our hands.
SELECT pg_current_xact_id()::text FROM pg_export_snapshot();
