"""Jobs in PostgreSQL, in an append-only ledger."""

from __future__ import annotations

from timeball.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
