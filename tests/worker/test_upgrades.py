"""The schema of the next version comes while a worker of this one works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.worker.supervision import (
    FOR_EVER_S,
    PATIENCE_S,
    assert_clean,
    configured,
    hold,
    submit,
    until,
)

from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.migrate import Migration, migrate, migrations

REST_S = 0.02  # between two jobs

NEXT = (
    "ALTER TABLE timeball.job ADD COLUMN made_up integer;",
    "CREATE INDEX CONCURRENTLY made_up ON timeball.job (made_up);",
)
LATER = "ALTER FUNCTION timeball.claim RENAME TO claim_of_old;"


@pytest.fixture
def upgraded(server: str) -> Iterator[str]:
    """A database of its own, which gets a schema that this version does not know."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE upgraded")
        yield make_conninfo(server, dbname="upgraded")
        connection.execute("DROP DATABASE upgraded WITH (FORCE)")


@pytest.fixture
def store(upgraded: str) -> Iterator[PostgresStore]:
    store = PostgresStore(upgraded)
    migrate(store.connections)
    yield store
    store.close()


def numbered(*texts: str) -> list[Migration]:
    return [
        Migration(f"migrations/{number:04}_made_up.sql", text, "made up", repeatable=False)
        for number, text in enumerate(texts, 2)
    ]


def next_version(*texts: str) -> list[Migration]:
    """All files of a later version: more tables, and every function another text."""
    known = [each for each in migrations() if not each.repeatable]
    functions = [
        each._replace(text=f"{each.text}-- Changed.\n", checksum=f"made up {len(texts)}")
        for each in migrations()
        if each.repeatable
    ]
    return [*known, *numbered(*texts), *functions]


@pytest.mark.slow
def test_a_worker_works_on_through_an_upgrade_until_what_it_calls_is_gone(
    upgraded: str,
    store: PostgresStore,
    folder: Path,
    launch: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = next_version(*NEXT)
    monkeypatch.setattr("timeball.store.postgres.migrate.migrations", lambda: files)
    process = launch(configured(upgraded, folder, drain_s=FOR_EVER_S))
    uuids: list[UUID] = [submit(store, "note", '{"text": "first"}')]
    until(lambda: store.ended(uuids), "it works")
    with ThreadPoolExecutor(1) as pool:
        migration = pool.submit(migrate, store.connections)
        while not migration.done():
            uuids.append(submit(store, "note", f'{{"text": "{len(uuids)}"}}'))
            wait([migration], REST_S)
        assert len(migration.result()) == len(files) - 1
    uuids.append(submit(store, "note", '{"text": "last"}'))
    until(lambda: len(store.ended(uuids)) == len(uuids), "all have ended")
    assert process.poll() is None
    assert (folder / "stderr").read_text() == ""

    held, _ = hold(store, folder)
    files = next_version(*NEXT, LATER)
    migrate(store.connections)
    until(lambda: "or install the newer Timeball" in (folder / "stderr").read_text(), "it is told")
    assert process.poll() is None, "it lets end what has begun"
    (folder / "go").touch()
    assert process.wait(PATIENCE_S) == 6
    states = [store.get(uuid) for uuid in (*uuids, held)]
    assert {(job.state, job.turn, job.crashes) for job in states} == {(State.SUCCEEDED, 1, 0)}
    assert len((folder / "notes").read_text().split()) == len(uuids)
    assert_clean(store, len(uuids) + 1)
