"""What the disasters are made of, and that what they look for would be seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import MagicMock, Mock, patch
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.certify.test_runner import played

from timeball import chance
from timeball.certify import databases
from timeball.certify.disasters import (
    aged,
    away,
    clocks,
    crowded,
    failover,
    fitful,
    full,
    links,
    stuck,
    unwoken,
)
from timeball.certify.disasters.long_kinds import ALIVE
from timeball.certify.effects import BEGAN, Effect
from timeball.certify.faults import Misfortune, failures
from timeball.certify.link import Way, linked
from timeball.certify.mutants.defects import InFunction
from timeball.certify.scenario import Outcome, Scenario, Skipped, Stalled, Status
from timeball.certify.sessions import until
from timeball.certify.stage import Stage, Terms
from timeball.certify.standby import Standby
from timeball.certify.volume import volume
from timeball.errors import StoreUnavailable, UsageError
from timeball.observe.transitions import Happening, Transition
from timeball.store.postgres import PostgresStore
from timeball.worker.pulse import Stuck

LANE = "PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);"


def attempts(*times: tuple[int, int]) -> list[Effect]:
    """The attempts of one job that were seen to be alive from some time to another."""
    job = uuid4()
    return [
        Effect(what, job, turn, 7, at_ns)
        for turn, run in enumerate(times, start=1)
        for what, at_ns in zip((BEGAN, ALIVE), run, strict=True)
    ]


GOOD = {"stopped in time": 1, "ran again": 1, "at once": 0}


@pytest.mark.parametrize(
    ("times", "change"),
    [
        (((1, 20), (50, 60)), {}),
        (((1, 40), (50, 60)), {"stopped in time": 0}),
        (((1, 20),), {"ran again": 0}),
        (((1, 20), (20, 60)), {"at once": 1}),
        (((1, 55), (50, 60)), {"stopped in time": 0, "at once": 1}),
        (((1, 20), (50, 60), (55, 70)), {"at once": 1}),
    ],
)
def test_exclusive_attempts_that_were_not_stopped_in_time_or_run_at_once_are_seen(
    times: tuple[tuple[int, int], ...], change: dict[str, int]
) -> None:
    runs: dict[UUID, list[away.Run]] = away.runs(reversed(attempts(*times)))
    assert away.told(runs.values(), until_ns=40) == {**GOOD, **change}


@pytest.mark.slow
def test_a_link_that_stands_still_loses_nothing_and_one_that_is_cut_refuses(direct: str) -> None:
    with linked(direct) as link, closing(PostgresStore(link.dsn)) as store:
        store.ensure_lanes([("early", 5)])
        link.turn(Way.HOLD)
        call = threading.Thread(target=store.ensure_lanes, args=([("late", 5)],))
        call.start()
        call.join(0.05)
        assert call.is_alive()
        link.turn(Way.PASS)
        call.join(30.0)
        assert not call.is_alive()
        link.turn(Way.CUT)
        for _ in range(2):  # the old connection, and a new one
            with pytest.raises(StoreUnavailable):
                store.now()
        link.turn(Way.PASS)
        assert {queue.name for queue in store.queues()} >= {"early", "late"}


@pytest.mark.slow
def test_through_a_link_that_is_mute_what_is_asked_is_done_and_not_answered(direct: str) -> None:
    with linked(direct) as link, closing(PostgresStore(link.dsn)) as store:
        store.ensure_lanes([("early", 5)])
        link.turn(Way.MUTE)
        call = threading.Thread(target=store.ensure_lanes, args=([("late", 5)],))
        call.start()
        with closing(PostgresStore(direct)) as other:
            until(lambda: "late" in {queue.name for queue in other.queues()}, "it is done")
        assert call.is_alive()
        link.turn(Way.PASS)
        call.join(30.0)
        assert not call.is_alive()


@pytest.mark.slow
def test_what_a_link_swallows_is_lost_and_new_connections_wait_until_it_passes_again(
    direct: str,
) -> None:
    with linked(direct) as link, closing(psycopg.connect(link.dsn, autocommit=True)) as ear:
        ear.execute("LISTEN of_a_link")
        link.turn(Way.SWALLOW)
        with closing(psycopg.connect(direct, autocommit=True)) as other:
            other.execute("NOTIFY of_a_link, 'lost'")
        until(lambda: link.swallowed, "it is sent, and swallowed")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(link.dsn)
        link.turn(Way.PASS)
        assert [*ear.notifies(timeout=0.05)] == []
        psycopg.connect(link.dsn).close()


@pytest.mark.slow
def test_the_first_statement_of_a_name_fails_and_its_transaction_with_it(
    direct: str, tmp_path: Path
) -> None:
    with closing(PostgresStore(direct)) as store:
        misfortune = Misfortune(str(tmp_path), seed=1)

        def ask(name: str) -> bool:
            try:
                with store.connections.transaction() as run, store.connections.borrowed() as other:
                    run("ensure_lanes", queues=[name], priorities=[5])
                    misfortune.strike(name, other)
            except StoreUnavailable:
                return False
            return True

        first = [ask(name) for name in ("a", "b")]
        assert first == [False, False]
        assert store.queues() == []
        assert any(ask("a") for _ in range(20))
    met = failures(tmp_path)
    assert {met["a", "40001"], met["b", "40001"]} == {1}
    assert met.total() < 20


@pytest.mark.slow
def test_a_claim_that_looks_at_what_has_died_is_seen_by_its_pages(
    server: str, tmp_path: Path
) -> None:
    looks = InFunction("claim", LANE, "PERFORM count(*) FROM timeball.held; " * 5 + LANE)

    def run(stage: Stage) -> Outcome:
        with closing(PostgresStore(stage.dsn)) as store:
            ledger = aged.Ledger(stage, store)
            most = aged.RATIO * ledger.pages()
            with aged.snapshot(stage):
                ledger.load(1_000)
                wide = [ledger.pages() > most]
                stage.watcher.execute(looks.changed())
                wide += [ledger.pages() > most]
            store.retire(ledger.worker)
        return Outcome(
            expected={"wide": [False, True]}, observed={"wide": wide}, witness={"snapshots": 1}
        )

    result = played(server, tmp_path, run)
    assert (result.status, result.failed) == (Status.PASSED, ())


def test_a_full_disk_takes_nothing_until_it_is_freed(tmp_path: Path) -> None:
    with ExitStack() as exits:
        try:
            disk = exits.enter_context(volume(1, tmp_path.stat()))
        except Skipped as skipped:
            pytest.skip(str(skipped))
        file = disk.data / "file"
        assert disk.fill() > 900_000
        with pytest.raises(OSError, match="No space left"):
            file.write_bytes(b"1")
        disk.free()
        assert file.write_bytes(b"1") == 1


def test_a_disk_that_somebody_has_a_file_of_open_is_gone_all_the_same(tmp_path: Path) -> None:
    with ExitStack() as later:
        try:
            with volume(1, tmp_path.stat()) as disk:
                later.enter_context((disk.data / "file").open("wb"))
        except Skipped as skipped:
            pytest.skip(str(skipped))
        assert not disk.data.parent.exists()
        assert str(disk.data.parent) not in Path("/proc/mounts").read_text()


def test_a_signal_amid_the_removal_of_a_server_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    told = Mock(side_effect=[SystemExit(143), UsageError("half gone")])
    monkeypatch.setattr(databases, "reset", told)
    server = Mock()
    with pytest.raises(SystemExit):
        databases.remove(server, folder)
    assert not folder.exists()
    server.stop.assert_called_once_with()


def test_a_client_that_is_never_answered_gives_up_at_the_deadline() -> None:
    def until(true: Callable[[], object], what: str) -> None:
        assert not any(true() for _ in range(3))
        raise Stalled(what)

    stage = Mock(spec=Stage, history=MagicMock(), accepted=set(), until=until)
    store = Mock(spec=PostgresStore, submit=Mock(side_effect=StoreUnavailable("away")))
    with pytest.raises(Stalled, match="is answered"):
        fitful._insisted(stage, store, [])
    assert store.submit.call_count == 3


@pytest.mark.parametrize("heeded", [True, False])
def test_a_clock_counts_as_off_only_where_the_program_goes_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, heeded: bool
) -> None:
    for name in ("time", "time_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))  # so that all is put back
    monkeypatch.setattr(chance, "datetime", datetime)
    if not heeded:
        monkeypatch.setattr(chance, "now", lambda: datetime.now(UTC))
    clocks.set_off(3_600, str(tmp_path))
    assert clocks.noted_off(tmp_path, 3_600) == heeded
    assert clocks.noted_off(tmp_path, -3_600) == 0


def test_what_is_told_of_a_worker_that_stands_still_is_read_as_it_was_written() -> None:
    begun = Transition(Happening.WORKER_STALLED, worker=1, reason=Stuck.INTERPRETER, jobs=[17, 4])
    over = Transition(Happening.WORKER_GOES_ON, worker=1, reason=Stuck.INTERPRETER, stalled_s=3.0)
    told = stuck.told([f"child 7 exited\n{begun}\n", f"{over}\n{begun._replace(jobs=[5])}\n"])
    assert told == ({Stuck.INTERPRETER: {4, 5, 17}}, {Stuck.INTERPRETER})
    silent = Transition(Happening.WORKER_STALLED, reason=Stuck.EVENT_LOOP, jobs=[])
    assert stuck.told([f"{silent}\n", "another log\n"]) == ({Stuck.EVENT_LOOP: set()}, set())


def test_a_listener_that_was_ended_and_is_still_seen_does_not_listen_again() -> None:
    old, new, seen = [(1,), (2,)], [(3,), (4,)], [[(1,), (2,)], [(2,), (3,)], [(3,)]]

    def until(true: Callable[[], object], what: str) -> None:
        while seen:
            assert not true(), what
        assert true()

    stage = Mock(spec=Stage, ask=lambda _: seen.pop(0) if seen else new, until=until)
    assert unwoken.listening_anew(stage, old) == 2
    assert seen == []


@pytest.mark.slow
def test_a_worker_that_runs_what_is_not_due_at_a_later_look_is_seen(
    server: str, tmp_path: Path
) -> None:
    early = InFunction(
        "promote",
        "held.run_at <= timeball.now()\n        ORDER",
        "held.run_at <= timeball.now() + interval '1 h' * (SELECT count(*) FROM timeball.ended)\n"
        "        ORDER",
    )

    def run(stage: Stage) -> Outcome:
        stage.watcher.execute(early.changed())
        seen = clocks.Clocks(stage).of_a_worker(3_600)["what is not due"]
        return Outcome(expected={"early": True}, observed={"early": seen != ["scheduled"]},
                       witness={"clocks": 1})  # fmt: skip

    result = played(server, tmp_path, run)
    assert [check.name for check in result.failed] == ["audit"]  # which sees it too: I12


@pytest.mark.slow
def test_a_primary_that_does_not_wait_for_its_standby_is_seen(direct: str) -> None:
    stage = Mock(spec=Stage, accepted=set(), until=lambda true, _: until(true, "answered"))
    site = Mock(spec=failover.Site, stage=stage, primary=Mock(spec=Standby, dsn=direct))
    standby = Standby.__new__(Standby)
    standby._primary = direct
    with patch.object(Standby, "stands_still", nullcontext):
        assert failover.kept_waiting(site, standby) == 0
    assert len(stage.accepted) == 1


@pytest.mark.parametrize(
    "deed", [away.X4, links.X7, failover.X8, crowded.X10, full.X11], ids=lambda deed: deed.id
)
def test_what_is_done_to_a_server_is_not_done_to_one_of_others(deed: Scenario) -> None:
    foreign = Mock(spec=Stage, terms=Terms(own_server=None))
    with pytest.raises(Skipped, match="leave --dsn out"):
        deed.run(foreign)
    assert foreign.mock_calls == []
