"""Connections to be stepped, and a store beside them whose record is audited afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.store.postgres.sessions import Session

from timeball.core.audit import audit
from timeball.store.postgres import PostgresStore


@pytest.fixture
def session(dsn: str) -> Iterator[Callable[[], Session]]:
    """Makes sessions on the empty database; closes them in the end."""
    sessions: list[Session] = []
    with psycopg.connect(dsn, autocommit=True) as watcher:

        def make() -> Session:
            sessions.append(Session(dsn, watcher))
            return sessions[-1]

        yield make
        for each in sessions:
            each.close()


@pytest.fixture
def ledger(dsn: str) -> Iterator[PostgresStore]:
    """A store on the empty database; what the test did to it must pass the audit."""
    store = PostgresStore(dsn)
    yield store
    report = audit(store.histories(), quiesced=False)
    store.close()
    assert not report.violations
