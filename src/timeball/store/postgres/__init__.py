"""Jobs in PostgreSQL, in an append-only ledger."""
