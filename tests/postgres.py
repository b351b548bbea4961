"""A real PostgreSQL for the tests: one server a session, its database emptied each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.pgbouncer import forget_sessions, pgbouncer

from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate

TABLES = (
    *("lane", "job", "entry", "lease", "ended", "held", "worker", "schedule", "occurrence"),
    *("event", "deletion", "deadline", "unique_key", "limiter", "slot", "dependency", "queue"),
    *("progress", "logged", "permit", "moved", "operation"),
)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a server of this session's own, its schema migrated."""
    folder: Path = tmp_path_factory.mktemp("server")
    with EmbeddedPostgres(folder / "data", linger_s=0.0) as embedded:
        with psycopg.connect(embedded.dsn, autocommit=True) as connection:
            for setting in ("fsync = off", "full_page_writes = off", "autovacuum = off"):
                connection.execute(f"ALTER SYSTEM SET {setting}")  # nobody needs this data again
            connection.execute("SELECT pg_reload_conf()")
        connections = Connections(embedded.dsn)
        migrate(connections)
        connections.close()
        yield embedded.dsn


@pytest.fixture(scope="session")
def pooler(server: str, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The DSN of a pooling proxy in front of the server, where `--pgbouncer` asks for one."""
    if not request.config.getoption("--pgbouncer"):
        yield None
        return
    with pgbouncer(server) as dsn:
        yield dsn


@pytest.fixture
def direct(server: str, pooler: str | None) -> str:
    """The DSN of the migrated database, empty; no proxy in between."""
    if pooler is not None:
        forget_sessions(pooler)
    with psycopg.connect(server, autocommit=True) as connection:
        tables = ", ".join(f"timeball.{table}" for table in TABLES)
        connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
    return server


@pytest.fixture
def dsn(direct: str, pooler: str | None) -> str:
    """The DSN that a user of that database has."""
    return pooler or direct


@pytest.fixture
def store(direct: str, pooler: str | None) -> Iterator[PostgresStore]:
    """A store on the empty database."""
    store = PostgresStore(pooler or direct)
    yield store
    store.close()
