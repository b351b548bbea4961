"""Find the database: an explicit DSN, the environment's, or the embedded PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable

from timeball.client.aio import AsyncClient
from timeball.client.sync import Client
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import check, migrate


def connect(dsn: str | None = None, *, schema: str = "timeball") -> Client:
    """Return a client of the database, ready to use.

    Args:
        dsn: A libpq URL or key=value text. None: `TIMEBALL_DSN`, then `DATABASE_URL`, and
            without either the embedded PostgreSQL, which is started where it is not
            running and migrated.
        schema: Where Timeball's tables are.

    Raises:
        StoreUnavailable: The database cannot be reached.
        SchemaMismatch: It was not migrated to this version; the text says how.
        EmbeddedUnavailable: No PostgreSQL to embed, or it would not start.
    """
    store, close = open_store(dsn, schema=schema)
    return Client(store, close=close)


def connect_async(dsn: str | None = None, *, schema: str = "timeball") -> AsyncClient:
    """Return an `AsyncClient`; see `connect`. Blocks until the server is there."""
    return AsyncClient(connect(dsn, schema=schema))


def open_store(
    dsn: str | None = None, *, schema: str = "timeball"
) -> tuple[PostgresStore, Callable[[], None]]:
    """Return the store of a database, and what gives it back. See `connect`."""
    found = dsn or os.environ.get("TIMEBALL_DSN") or os.environ.get("DATABASE_URL")
    if found:
        store = PostgresStore(found, schema=schema)
        try:
            check(store.connections)
        except BaseException:
            store.close()
            raise
        return store, store.close
    embedded = EmbeddedPostgres()
    store = PostgresStore(embedded.start(), schema=schema)

    def close() -> None:
        store.close()
        embedded.stop()

    try:
        migrate(store.connections)
    except BaseException:
        close()
        raise
    return store, close
