"""Each check of the doctor: shown to see what was planted for it in a real database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from tests.store.postgres.plans import Explained, seed
from tests.store.postgres.processes import eventually

from timeball.core.diagnosis import Finding, Severity, diagnosed
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections, Run, statement
from timeball.store.postgres.doctor import examine, facts_of
from timeball.store.postgres.reading import ReadingConnections

JOB = """INSERT INTO timeball.job
    (uuid, lane, kind, args, max_retries, max_crashes, at_most_once)
    VALUES (gen_random_uuid(), 1, 'nobody', '{}', 3, 3, false)"""
HELD = """INSERT INTO timeball.held (job_id, turn, state, lane, kind, reason)
    SELECT id, 1, 'pending', 1, kind, 'no_worker' FROM timeball.job"""
WORKER = """INSERT INTO timeball.worker (name, kinds, queues, lease_s, beat_at)
    VALUES ('gone', '{}', '{}', 9, now() - interval '1 hour')"""
SCHEDULE = """INSERT INTO timeball.schedule
    (name, kind, expression, tz, gap, overlap, terms, args, queue, priority, max_retries,
     max_crashes, delivery, catchup, catchup_window_s, catchup_limit, grace_s, overlap_runs,
     source, state, error, active_from, cursor_at, due_at, zone_version, fingerprint, offset_s)
    VALUES ('it''s', 'k', '@daily', 'UTC', 'skip', 'first', '{}', '{}', 'q', 5, 0, 3,
     'at_least_once', 'last', 60, 1, 60, 'allow', '', '{state}', 'no zone', now(), now(),
     now() - interval '1 hour', '1999a', '', 0)"""


def unfinished(index: str) -> str:
    return f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'timeball.{index}'::regclass"


def schedule(state: str) -> str:
    return SCHEDULE.replace("{state}", state)


PLANTED = {
    "indexes: not there": ("DROP INDEX timeball.held_due", "held_due"),
    "indexes: not whole": (unfinished("held_kind"), "timeball.held_kind"),
    "kinds": (f"{JOB}; {HELD}", "nobody (1)"),
    "workers": (WORKER, "gone #"),
    "schedules: late": (schedule("active"), "it's has been due for 3,6"),
    "schedules: error": (schedule("error"), "it's does not fire: no zone"),
    "schedules: paused": (schedule("paused"), "paused: it's"),
    "zone data": (schedule("paused"), "1999a"),
    "durability": ("SET LOCAL synchronous_commit = off", "synchronous_commit is off"),
}


def run_of(connection: psycopg.Connection[Any]) -> Run:
    def run(name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        return connection.execute(statement(name), params).fetchall()

    return run


def found_in(connection: psycopg.Connection[Any], pid: int | None = None) -> list[Finding]:
    told = connection.info.backend_pid if pid is None else pid
    return diagnosed(facts_of(run_of(connection), "timeball", mismatch="", told_pid=told))


def told(found: list[Finding], check: str) -> str:
    """All that a check has to say against it."""
    bad = [one for one in found if one.check == check and one.severity is not Severity.OK]
    assert all(one.mend for one in bad)
    return "\n".join(f"{one.evidence}\n{one.mend}" for one in bad)


@contextmanager
def holding(dsn: str, *statements: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that is open until the end of the block, and then as if it had not been."""
    with psycopg.connect(dsn) as connection:
        for text in statements:
            connection.execute(text.encode())
        yield connection
        connection.rollback()


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found_with_what_mends_it(direct: str, name: str) -> None:
    plant, words = PLANTED[name]
    check = name.partition(":")[0]
    with holding(direct) as connection:
        assert words not in told(found_in(connection), check)
        connection.execute(plant.encode())
        assert words in told(found_in(connection), check)


def test_who_holds_an_old_snapshot_is_named(direct: str) -> None:
    snapshot = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM timeball.job")
    with holding(direct, *snapshot) as holder, closing(Connections(direct)) as connections:
        facts = examine(connections)
        pid = str(holder.info.backend_pid)
        assert pid in [one.name for one in facts.holders]
        assert f"pg_terminate_backend({pid})" in told(diagnosed(facts, old_s=0.0), "snapshots")
        assert told(diagnosed(facts, old_s=3_600.0), "snapshots") == ""


def test_dead_rows_are_counted(direct: str) -> None:
    rows = "INSERT INTO timeball.moved SELECT n, 1 FROM generate_series(1, 10001) AS n"
    with psycopg.connect(direct) as connection:
        connection.execute(rows.encode())
    with psycopg.connect(direct) as connection:
        connection.execute("DELETE FROM timeball.moved")
    with closing(Connections(direct)) as connections:

        def vacuum() -> bool:
            return "VACUUM (ANALYZE) timeball.moved" in told(
                diagnosed(examine(connections)), "dead rows"
            )

        eventually(vacuum)


def test_a_schema_of_a_newer_release_is_told_and_not_looked_into(direct: str) -> None:
    name = "migrations/9999_later.sql"
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("INSERT INTO timeball.migration VALUES (%s, '', '9.9')", [name])
        try:
            with closing(Connections(direct)) as connections:
                facts = examine(connections)
        finally:
            connection.execute("DELETE FROM timeball.migration WHERE name = %s", [name])
    assert name in told(diagnosed(facts), "schema")
    assert not facts.tables


def test_whoever_answers_for_the_server_is_a_proxy(direct: str) -> None:
    with holding(direct) as connection:
        assert told(found_in(connection), "pooling proxy") == ""
        assert "there is one" in told(found_in(connection, pid=1), "pooling proxy")


def test_of_a_database_in_order_nothing_is_said_that_its_settings_do_not_say(
    direct: str, store: PostgresStore
) -> None:
    with closing(ReadingConnections(direct)) as connections:
        found = diagnosed(examine(connections))
    assert abs(examine(store.connections).skew_s) < 60
    bad = {one.check for one in found if one.severity is not Severity.OK}
    assert bad <= {"durability", "autovacuum", "connections", "dead rows"}
    assert len({one.check for one in found}) == 15


def test_no_check_reads_a_large_table_from_its_beginning(direct: str) -> None:
    seed(direct, 2_000)
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("ANALYZE")
    with closing(Explained(direct)) as explained, explained.connection.transaction():
        explained.run("begin_reading", {"timeout_ms": 60_000})
        names = ("kinds", "workers", "schedules", "sessions", "tables", "indexes")
        plans = [explained.run(f"doctor_{name}", {"most": 100})[1] for name in names]
    scanned = {table for each in plans for plan in each for table in plan.scanned()}
    assert not scanned & {"job", "held", "entry", "ended", "event", "worker", "schedule"}
