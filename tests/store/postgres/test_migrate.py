"""Bringing a schema up to date: any number of times, from anywhere, and never half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import submit, until, worker_of

from timeball.core.records import JobSpec, Settlement
from timeball.core.states import Ending, State
from timeball.errors import SchemaMismatch, UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.migrate import check, migrate, migrations, script

CATALOGUE = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND a.attnum > 0
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), ''
FROM pg_constraint WHERE connamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'function', proname, pg_get_function_identity_arguments(oid), prosrc, proconfig::text
FROM pg_proc WHERE pronamespace = to_regnamespace(%(schema)s)
ORDER BY 1, 2, 3
"""


@pytest.fixture
def connections(server: str) -> Iterator[Callable[[], Connections]]:
    """Makes connections for a schema of its own, which is gone afterwards."""
    made: list[Connections] = []

    def make() -> Connections:
        made.append(Connections(server, schema="elsewhere"))
        return made[-1]

    yield make
    for each in made:
        each.close()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS elsewhere CASCADE")


def change(server: str, sql: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql)


@pytest.mark.slow
def test_a_second_migration_finds_nothing_to_do(connections: Callable[[], Connections]) -> None:
    names = [migration.name for migration in migrations()]
    assert migrate(connections()) == names
    assert migrate(connections()) == []
    check(connections())


@pytest.mark.slow
def test_of_four_migrations_at_once_each_step_is_done_by_one(
    connections: Callable[[], Connections],
) -> None:
    each = [connections() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = [name for names in pool.map(migrate, each) for name in names]
    assert sorted(done) == sorted(migration.name for migration in migrations())


def test_a_numbered_file_that_has_changed_is_refused(
    connections: Callable[[], Connections], server: str
) -> None:
    migrate(connections())
    change(server, "UPDATE elsewhere.migration SET checksum = 'x' WHERE name LIKE 'migrations/%'")
    for refuse in (migrate, check):
        with pytest.raises(SchemaMismatch, match="is not the file that was applied"):
            refuse(connections())


def test_a_newer_database_is_refused(connections: Callable[[], Connections], server: str) -> None:
    migrate(connections())
    change(server, "INSERT INTO elsewhere.migration VALUES ('migrations/9999_later.sql', 'x')")
    for refuse in (migrate, check):
        with pytest.raises(SchemaMismatch, match="install the newer Timeball"):
            refuse(connections())


def test_a_function_of_a_newer_version_is_left_alone(
    connections: Callable[[], Connections], server: str
) -> None:
    migrate(connections())
    change(server, "INSERT INTO elsewhere.migration VALUES ('functions/later.sql', 'x')")
    assert migrate(connections()) == []


@pytest.mark.slow
def test_a_function_that_has_changed_is_replaced(
    connections: Callable[[], Connections], server: str
) -> None:
    migrate(connections())
    change(
        server,
        "CREATE OR REPLACE FUNCTION elsewhere.passed(p_lane integer, p_xid xid8, p_job_id bigint)"
        " RETURNS boolean LANGUAGE sql AS 'SELECT NULL::boolean';"
        " UPDATE elsewhere.migration SET checksum = 'x' WHERE name = 'functions/passed.sql'",
    )
    with pytest.raises(SchemaMismatch, match="lacks 1 changes"):
        check(connections())
    assert migrate(connections()) == ["functions/passed.sql"]
    with psycopg.connect(server) as connection:
        passed = connection.execute("SELECT elsewhere.passed(1, '3', 1)").fetchone()
    assert passed == (False,)


def test_a_migration_that_fails_leaves_nothing(
    connections: Callable[[], Connections], server: str
) -> None:
    change(server, "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.occurrence (n integer)")
    with pytest.raises(psycopg.Error, match="already exists"):
        migrate(connections())
    with psycopg.connect(server) as connection:
        made = connection.execute("SELECT to_regclass('elsewhere.job')").fetchone()
    assert made == (None,)


def test_a_missing_schema_says_what_to_run(connections: Callable[[], Connections]) -> None:
    with pytest.raises(SchemaMismatch, match="run `timeball db migrate`"):
        check(connections())


@pytest.mark.slow
def test_two_schemas_live_side_by_side(
    connections: Callable[[], Connections], store: PostgresStore, server: str
) -> None:
    migrate(connections())
    other = PostgresStore(server, schema="elsewhere")
    spec = JobSpec(uuid=uuid4(), kind="a")
    other.submit([spec])
    worker = worker_of(other)
    (turn,) = other.claim(worker, limit=5, request=uuid4(), floors={})
    said = Settlement(*turn[:4], Ending.RETRIED, began_at=turn.granted_at)
    assert other.settle(worker, [said]) == ["accepted"]
    other.promote(5)
    assert other.cancel(spec.uuid) == "cancelled"
    assert [history.uuid for history in other.histories()] == [spec.uuid]
    assert store.counts() == {}
    submit(store)
    assert other.counts() == {State.CANCELLED: 1}
    other.close()


@pytest.mark.parametrize("schema", ["Upper", "a-b", "1a", "", "a;b", 'a"b', "x" * 64])
def test_a_schema_name_that_would_need_quotes_is_refused(schema: str) -> None:
    with pytest.raises(UsageError, match="lower-case"):
        script(schema)


@pytest.mark.slow
def test_the_script_makes_the_same_schema(
    connections: Callable[[], Connections], server: str
) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(script("elsewhere"))
        made = connection.execute(CATALOGUE, {"schema": "elsewhere"}).fetchall()
        check(connections())
        connection.execute("DROP SCHEMA elsewhere CASCADE")
        migrate(connections())
        migrated = connection.execute(CATALOGUE, {"schema": "elsewhere"}).fetchall()
    assert made == migrated
    assert len(made) > 100


def test_nobody_else_may_look_into_the_schema(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE ROLE timeball_stranger")
        connection.execute("SET ROLE timeball_stranger")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM timeball.job")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT timeball.submit('[]')")
        connection.execute("RESET ROLE")
        connection.execute("DROP ROLE timeball_stranger")


@pytest.mark.slow
def test_a_migration_that_waits_for_a_long_transaction_stops_nobody(
    store: PostgresStore, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets go of its place in the queue for the table, again and again, until it is free."""
    text = "ALTER TABLE timeball.job ADD COLUMN IF NOT EXISTS made_up integer"
    another = migrations()[-1]._replace(name="functions/zz_made_up.sql", text=text, checksum="1")
    known = [*migrations(), another]
    monkeypatch.setattr("timeball.store.postgres.migrate.migrations", lambda: known)
    worker = worker_of(store)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(server) as reader:
        reader.execute("SELECT count(*) FROM timeball.job")
        done = pool.submit(migrate, store.connections)
        waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode LIKE 'AccessEx%')"
        until(lambda: reader.execute(waits).fetchone() == (True,), "the migration waits")
        for _ in range(5):
            submit(store)
            assert len(store.claim(worker, limit=5, request=uuid4(), floors={})) == 1
        assert not done.done()
        reader.rollback()
        assert done.result(60.0) == [another.name]
    change(
        server,
        "ALTER TABLE timeball.job DROP COLUMN made_up;"
        " DELETE FROM timeball.migration WHERE name = 'functions/zz_made_up.sql'",
    )
