"""Data folders of an embedded server; connections to be stepped, and a store that is audited."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.store.postgres.pair import do
from tests.store.postgres.processes import User, eventually
from tests.store.postgres.sessions import Session

from timeball.core.audit import audit, stray_violations
from timeball.core.limits import limit_violations
from timeball.store.postgres import PostgresStore, server
from timeball.store.postgres.binaries import Binaries, find_binaries
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown
from timeball.store.postgres.migrate import migrate


@pytest.fixture(scope="session")
def found() -> Binaries:
    return find_binaries()


@pytest.fixture(scope="session")
def template(found: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used once: the other tests copy it, which is faster than initdb."""
    folder = tmp_path_factory.mktemp("template") / "pg"
    with EmbeddedPostgres(folder, binaries=found, linger_s=0):
        eventually(lambda: not (folder / server._UNSYNCED).exists())
    shutdown(folder)
    return folder


@pytest.fixture(scope="session")
def migrated(template: Path, found: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the schema in it, to be copied too, of a server that is in a hurry."""
    folder = tmp_path_factory.mktemp("migrated") / "pg"
    shutil.copytree(template, folder)
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as embedded:
        do(embedded.dsn, "ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET autovacuum = off")
        connections = Connections(embedded.dsn)
        migrate(connections)
        connections.close()
    shutdown(folder)
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "pg"
    yield folder
    shutdown(folder)


@pytest.fixture
def folder(template: Path, empty: Path) -> Path:
    shutil.copytree(template, empty)
    return empty


@pytest.fixture
def join(folder: Path, found: Binaries) -> Iterator[Callable[[], User]]:
    users: list[User] = []

    def another() -> User:
        users.append(User(folder, found))
        return users[-1]

    yield another
    for user in users:
        user.end(kill=True)


@pytest.fixture
def session(direct: str) -> Iterator[Callable[[], Session]]:
    """Makes sessions on the empty database; closes them in the end."""
    sessions: list[Session] = []
    with psycopg.connect(direct, autocommit=True) as watcher:

        def make() -> Session:
            sessions.append(Session(direct, watcher))
            return sessions[-1]

        yield make
        for each in sessions:
            each.close()


@pytest.fixture
def dsn(direct: str) -> str:
    """The server itself, for these tests look behind the store: at sessions, plans and locks."""
    return direct


@pytest.fixture
def ledger(direct: str, pooler: str | None) -> Iterator[PostgresStore]:
    """A store on the empty database; what the test did to it must pass the audit."""
    store = PostgresStore(pooler or direct)
    yield store
    report = audit(store.histories(), quiesced=False)
    report = report.including(limit_violations(store.holdings()))
    report = report.including(stray_violations(store.strays()))
    store.close()
    assert not report.violations
