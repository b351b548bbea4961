"""The next version's schema comes while this version works: each step fits both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import Session, claim_all, claim_of, submit, until, worker_of

from timeball.errors import SchemaMismatch, StoreUnavailable
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.migrate import Migration, check, migrate, migrations, script

Make = Callable[[], Session]
Next = Callable[[str], Migration]

INDEX = "CREATE INDEX CONCURRENTLY made_up ON timeball.job (kind);\n"
UNIQUE = "CREATE UNIQUE INDEX CONCURRENTLY made_up ON timeball.job (kind);\n"
STATE = (
    "SELECT indexrelid, indisvalid FROM pg_index WHERE indexrelid = to_regclass('timeball.made_up')"
)
OLD_CLAIM = "bigint, integer, uuid, integer[], bigint[], bigint[], double precision, jsonb"


def next_claim() -> str:
    """`claim` as a later version may have it: one parameter more, and none that has a default."""
    (text,) = (each.text for each in migrations() if each.name == "functions/claim.sql")
    head, mark, rest = text.partition(", OUT o_lane")
    return re.sub(r" DEFAULT [^,)]+", "", head) + ", p_made_up integer" + mark + rest


@pytest.fixture
def owner(direct: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(direct, autocommit=True) as connection:
        yield connection


@pytest.fixture
def next_file(owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Next]:
    """Adds a numbered file to those that are known; all is as it was afterwards."""
    known = migrations()

    def add(text: str) -> Migration:
        number = sum(not each.repeatable for each in known) + 1
        added = Migration(f"migrations/{number:04}_made_up.sql", text, "made up", repeatable=False)
        known.insert(number - 1, added)
        monkeypatch.setattr("timeball.store.postgres.migrate.migrations", lambda: known)
        return added

    owner.execute("CREATE TEMP TABLE kept AS TABLE timeball.migration")
    yield add
    owner.execute("DROP INDEX IF EXISTS timeball.made_up")
    owner.execute("DELETE FROM timeball.migration")
    owner.execute("INSERT INTO timeball.migration SELECT * FROM kept")


# Indexes


@pytest.mark.slow
def test_an_index_that_waits_for_an_open_transaction_stops_nobody(
    ledger: PostgresStore, session: Make, owner: psycopg.Connection, next_file: Next
) -> None:
    added = next_file(INDEX)
    worker, writer = worker_of(ledger), session().begin()
    writer.run("LOCK timeball.job IN ROW EXCLUSIVE MODE")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(migrate, ledger.connections)
        until(lambda: owner.execute(STATE).fetchone(), "it is being built")
        for _ in range(5):
            submit(ledger)
            assert len(claim_all(ledger, worker)) == 1
        assert not done.done()
        writer.commit()
        assert done.result(60.0) == [added.name]
    assert owner.execute(STATE).fetchone()[1] is True


def test_an_index_that_was_left_unfinished_is_built_anew(
    store: PostgresStore, owner: psycopg.Connection, next_file: Next
) -> None:
    added = next_file(UNIQUE)
    submit(store, 2)  # of one kind
    with pytest.raises(StoreUnavailable, match="could not create unique index"):
        migrate(store.connections)
    assert owner.execute(STATE).fetchone()[1] is False
    with pytest.raises(SchemaMismatch, match="lacks 1 changes"):
        check(store.connections)
    owner.execute("DELETE FROM timeball.job")
    assert migrate(store.connections) == [added.name]
    assert owner.execute(STATE).fetchone()[1] is True


def test_an_index_that_was_built_and_not_noted_is_kept(
    ledger: PostgresStore, owner: psycopg.Connection, next_file: Next
) -> None:
    added = next_file(INDEX)
    owner.execute(INDEX.encode())
    before = owner.execute(STATE).fetchone()
    assert migrate(ledger.connections) == [added.name]
    assert owner.execute(STATE).fetchone() == before
    check(ledger.connections)


@pytest.mark.slow
def test_of_two_migrations_at_once_one_builds_the_index(
    ledger: PostgresStore, session: Make, owner: psycopg.Connection, next_file: Next
) -> None:
    """The other one waits without a snapshot: else the index would wait for it."""
    added = next_file(INDEX)
    writer = session().begin()
    writer.run("LOCK timeball.job IN ROW EXCLUSIVE MODE")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(migrate, ledger.connections) for _ in range(2)]
        until(lambda: owner.execute(STATE).fetchone(), "it is being built")
        assert not [each for each in both if each.done()]
        writer.commit()
        done = [each.result(60.0) for each in both]
    assert sorted(done) == [[], [added.name]]


def test_a_script_builds_an_index_between_two_transactions(next_file: Next) -> None:
    next_file(INDEX)
    before, after = script().split(INDEX)
    assert before.endswith("COMMIT;\n")
    assert after.startswith("BEGIN;\n")


# Functions


@pytest.mark.slow
def test_a_function_of_another_signature_stands_beside_the_one_that_older_workers_call(
    ledger: PostgresStore, owner: psycopg.Connection, next_file: Next
) -> None:
    worker = worker_of(ledger)
    next_file(next_claim())
    migrate(ledger.connections)
    submit(ledger)
    assert len(claim_all(ledger, worker)) == 1
    names = [name for name in claim_of(worker) if name != "made_up"]
    new = f"SELECT * FROM timeball.claim({', '.join(f'%({name})s' for name in names)}, 7)"
    submit(ledger)
    casts = {"lanes": "::integer[]", "floors": "::bigint[]", "newest": "::bigint[]"}
    for name, cast in {**casts, "permits": "::jsonb", "aging_s": "::float8"}.items():
        new = new.replace(f"%({name})s", f"%({name})s{cast}")
    assert owner.execute(new, claim_of(worker)).fetchone()[1] == 2
    both = "SELECT bool_and(prosecdef), count(*) FROM pg_proc WHERE proname = 'claim'"
    assert owner.execute(both).fetchone() == (True, 2)

    next_file(f"DROP FUNCTION timeball.claim({OLD_CLAIM})")
    migrate(ledger.connections)
    with pytest.raises(SchemaMismatch, match="or install the newer Timeball"):
        ledger.claim(worker, limit=1, request=uuid4(), floors={})
    owner.execute("DROP FUNCTION timeball.claim")
    owner.execute("DELETE FROM timeball.migration WHERE name = 'functions/claim.sql'")
    migrate(ledger.connections)  # as it was, for the tests that follow


def test_an_older_program_does_not_put_its_functions_back(
    ledger: PostgresStore, owner: psycopg.Connection, next_file: Next
) -> None:
    owner.execute(
        "UPDATE timeball.migration SET checksum = 'x', program = '99.0.0'"
        " WHERE name = 'functions/claim.sql'"
    )
    for refuse in (migrate, check):
        with pytest.raises(SchemaMismatch, match="install the newer Timeball"):
            refuse(ledger.connections)
    next_file(INDEX)  # for what it puts back
