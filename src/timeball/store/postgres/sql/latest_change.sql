-- Return what moves with every transaction that writes anything, on the whole server.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text;
