"""A dump is loaded into a server whose transactions have lower numbers: nothing is lost by that."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.store.postgres.pair import do, tool
from tests.store.postgres.processes import ask
from tests.store.postgres.sessions import Session, claim_all, submit, worker_of

from timeball.core.audit import audit
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending, State
from timeball.errors import WorkerExpired
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown

pytestmark = pytest.mark.slow

BURN = "DO $$BEGIN FOR n IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$"
AT_HOME = (
    "CREATE OR REPLACE FUNCTION timeball.at_home() RETURNS boolean LANGUAGE sql STABLE"
    " AS 'SELECT true'"
)


def ended(turns: list[Turn], ending: Ending = Ending.SUCCEEDED) -> list[Settlement]:
    return [Settlement(*turn[:4], ending, began_at=turn.granted_at) for turn in turns]


@pytest.fixture(scope="session")
def dump(migrated: Path, found: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server far ahead: 2 succeeded, 1 retried, 1 scheduled, 4 running, 5 pending."""
    folder = tmp_path_factory.mktemp("old") / "pg"
    shutil.copytree(migrated, folder)
    file = folder.parent / "dump"
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as server:
        do(server.dsn, BURN)
        store = PostgresStore(server.dsn)
        submit(store, 7)
        worker = worker_of(store)
        turns = claim_all(store, worker)
        store.settle(worker, [*ended(turns[:2]), *ended(turns[2:3], Ending.RETRIED)])
        submit(store, 1, run_at=datetime.now(UTC) + timedelta(days=1))
        submit(store, 3)
        submit(store, 2, priority=7)
        store.close()
        tool(found, "pg_dump", "-d", server.dsn, "-Fc", "-f", file)
    shutdown(folder)
    return file


@pytest.fixture(scope="session")
def loaded(dump: Path, found: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a new server with the dump in it, which has ended."""
    folder = tmp_path_factory.mktemp("loaded") / "pg"
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as server:
        tool(found, "pg_restore", "-d", server.dsn, dump)
    shutdown(folder)
    return folder


@pytest.fixture
def restored(loaded: Path, found: Binaries, tmp_path: Path) -> Iterator[str]:
    """The DSN of that server, for one test."""
    shutil.copytree(loaded, tmp_path / "new")
    with EmbeddedPostgres(tmp_path / "new", binaries=found, linger_s=0) as server:
        yield server.dsn
    shutdown(tmp_path / "new")


@pytest.fixture
def store(restored: str) -> Iterator[PostgresStore]:
    store = PostgresStore(restored)
    yield store
    store.close()


def test_all_that_was_pending_or_running_is_granted_once(store: PostgresStore) -> None:
    early = submit(store, 2)  # before any worker has come
    worker = worker_of(store)
    late = submit(store, 2)
    turns = claim_all(store, worker)
    assert len({turn.uuid for turn in turns}) == len(turns) == 5 + 4 + 2 + 2
    assert {spec.uuid for spec in (*early, *late)} <= {turn.uuid for turn in turns}
    assert [turn.kind for turn in turns if turn.crashes] == ["a"] * 4  # whose worker is elsewhere
    store.promote(100)
    turns += claim_all(store, worker)
    assert len(turns) == 14  # the retried one too
    assert store.settle(worker, ended(turns)) == ["accepted"] * 14
    assert store.counts() == {State.SUCCEEDED: 16, State.SCHEDULED: 1}
    report = audit(store.histories(), quiesced=False)
    assert not report.violations


def test_what_is_cancelled_before_any_worker_has_come_never_starts(store: PostgresStore) -> None:
    """By its number the new one seems to be granted: what is requested holds for the next turn."""
    new, other = submit(store, 2)
    old = next(job for job in store.jobs(JobFilter()) if job.state is State.PENDING)
    answers = [store.cancel(uuid) for uuid in (new.uuid, old.uuid)]
    turns = {turn.uuid for turn in claim_all(store, worker_of(store))}
    assert other.uuid in turns
    assert not turns & {new.uuid, old.uuid}, answers
    assert {store.get(uuid).state for uuid in (new.uuid, old.uuid)} == {State.CANCELLED}
    assert not audit(store.histories(), quiesced=False).violations


def test_without_moving_in_they_would_be_lost(restored: str, store: PostgresStore) -> None:
    """The defect that this is about: a window between two servers' snapshots shows nothing."""
    do(restored, AT_HOME)
    submit(store, 2)
    assert claim_all(store, worker_of(store)) == []
    assert store.counts()[State.RUNNING] > 4  # so it would look for ever


def test_the_next_turn_has_all_that_the_moved_one_had(restored: str, store: PostgresStore) -> None:
    """Whatever columns an entry has, those added later too."""
    do(
        restored,
        "UPDATE timeball.entry SET at = now(), attempts = 5, failures = 3, crashes = 1,"
        " delay_s = 7, expires_at = now() + interval '1 day', at_once = 4, lined_at = now()",
    )
    rows = (
        "SELECT json_agg(to_jsonb(entry) - '{xid,turn}'::text[] ORDER BY entry.job_id)"
        " FROM timeball.entry JOIN (SELECT * FROM timeball.ended WHERE event = 'moved') AS moved"
        " ON moved.job_id = entry.job_id AND entry.turn = moved.turn + "
    )
    assert store.move_in() == 5
    before, after = ask(restored, rows + "0"), ask(restored, rows + "1")
    assert isinstance(before, list)
    assert len(before) == 5
    assert None not in before[0].values()
    assert before == after


def test_the_workers_of_the_other_server_are_given_up(store: PostgresStore) -> None:
    assert store.move_in() == 5
    with pytest.raises(WorkerExpired):
        claim_all(store, 1)
    assert store.move_in() is None


def test_what_commits_while_the_ledger_moves_in_is_granted_once(
    restored: str, store: PostgresStore
) -> None:
    with psycopg.connect(restored, autocommit=True) as watcher:
        before, after = Session(restored, watcher).begin(), Session(restored, watcher).begin()
        text = '[{"uuid": "%s", "kind": "a"}]'
        ask_for = "SELECT timeball.submit(%s)"
        before.run(ask_for, [text % "00000000-0000-4000-8000-000000000001"])
        moving = Session(restored, watcher).begin()
        moving.run("SELECT timeball.move_in()")
        after.run(ask_for, [text % "00000000-0000-4000-8000-000000000002"])
        before.commit()
        moving.commit()
        after.commit()
        for session in (before, after, moving):
            session.close()
    turns = claim_all(store, worker_of(store))
    assert len({turn.uuid for turn in turns}) == len(turns) == 5 + 4 + 2


def test_who_runs_a_job_is_known_after_the_move(store: PostgresStore) -> None:
    worker = worker_of(store)
    turns = claim_all(store, worker)
    assert {store.get(turn.uuid).worker for turn in turns} == {worker}


def test_it_moves_in_once(restored: str, store: PostgresStore) -> None:
    worker_of(store)
    assert ask(restored, "SELECT timeball.at_home()") is True
    assert ask(restored, "SELECT moves FROM timeball.home") == 1
