"""A real PostgreSQL for the tests: one server a session, its database emptied each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


# A connection costs as much as what most tests do with it, and half of that are password rounds.
LET_IN = "local all timeball trust\n"
# What was touched since it was last empty; a TRUNCATE of all takes longer than most tests do.
USED = """
SELECT oid::regclass FROM pg_class
WHERE oid = ANY (%s::regclass[]) AND (pg_relation_size(oid) > 0 OR reltuples >= 0)
"""
COUNTED = """
SELECT format('ALTER SEQUENCE %I.%I RESTART', schemaname, sequencename)
FROM pg_sequences WHERE schemaname = 'timeball' AND last_value IS NOT NULL
"""


def empty(connection: psycopg.Connection[Any], *, plans: bool = False) -> None:
    """Leave no row, no statistics and no number that was used, as in a database just migrated.

    Args:
        connection: In autocommit mode.
        plans: Keep the plans that connections have made, and with them statistics and dead rows.
    """
    found = connection.execute(USED, [[f"timeball.{table}" for table in TABLES]]).fetchall()
    tables = [table for (table,) in found]
    if plans:
        statements = [f"DELETE FROM {table}" for table in tables]
    else:
        statements = [f"TRUNCATE {', '.join(tables)}"] * bool(tables)
    statements += [statement for (statement,) in connection.execute(COUNTED).fetchall()]
    for statement in statements:
        connection.execute(statement)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a server of this session's own, its schema migrated."""
    folder: Path = tmp_path_factory.mktemp("server")
    with EmbeddedPostgres(folder / "data", linger_s=0.0) as embedded:
        with psycopg.connect(embedded.dsn, autocommit=True) as connection:
            for setting in ("fsync = off", "full_page_writes = off", "autovacuum = off"):
                connection.execute(f"ALTER SYSTEM SET {setting}")  # nobody needs this data again
            (hba,) = connection.execute("SHOW hba_file").fetchone() or ("",)
            Path(hba).write_text(LET_IN + Path(hba).read_text())
            connection.execute("SELECT pg_reload_conf()")
        connections = Connections(embedded.dsn)
        migrate(connections)
        connections.close()
        yield embedded.dsn


@pytest.fixture(scope="session")
def sweeper(server: str) -> Iterator[Callable[[], None]]:
    """Empties the database, over a connection that it keeps unless a test ends it."""
    connection = psycopg.connect(server, autocommit=True)

    def sweep() -> None:
        nonlocal connection
        try:
            empty(connection)
        except psycopg.OperationalError:
            connection.close()
            connection = psycopg.connect(server, autocommit=True)
            empty(connection)

    yield sweep
    connection.close()


@pytest.fixture(scope="session")
def pooler(server: str, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The DSN of a pooling proxy in front of the server, where `--pgbouncer` asks for one."""
    if not request.config.getoption("--pgbouncer"):
        yield None
        return
    with pgbouncer(server) as dsn:
        yield dsn


@pytest.fixture
def direct(server: str, pooler: str | None, sweeper: Callable[[], None]) -> str:
    """The DSN of the migrated database, empty; no proxy in between."""
    if pooler is not None:
        forget_sessions(pooler)
    sweeper()
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
