"""Attempts in processes apart: which go there, and what the worker makes of how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.worker.recount import told

from timeball.action.context import StopSign
from timeball.action.kind import Kind
from timeball.action.registry import DEFAULT, Registry
from timeball.core.outcomes import Raised, Returned, Unbegun
from timeball.core.records import Settlement, Turn, Verdict
from timeball.core.retry import Retry
from timeball.core.states import Ending
from timeball.engine.runner import Done, Ended, Lost
from timeball.observe import families
from timeball.observe.board import Board
from timeball.observe.transitions import LogFormat
from timeball.worker.apart import attempt, processes, run_apart
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.begun import BegunTable
from timeball.worker.child import Load
from timeball.worker.telling import Counts
from timeball.worker.tenure import Tenure

APP = """
import os, time
import timeball as tb

@tb.job(name="apart-here")
def here(number: int, ctx: tb.Context):
    return [number, os.getpid(), ctx.turn, ctx.key]

def defined():
    @tb.job(name="apart-closure")
    def closure():
        return "found by its name"

defined()

@tb.job(name="apart-spawns")
def spawns(ctx: tb.Context):
    ctx.spawn("other", after=[ctx.spawn("other")])

@tb.job(name="apart-nan")
def nan():
    return float("nan")
"""


def turn_of(kind: str, args: str = "{}", **fields: Any) -> Turn:
    facts = {"attempts": 0, "failures": 0, "crashes": 0, "delay_s": 0.0, "max_retries": 3}
    known = {"uuid": uuid4(), "timeout_s": None, "granted_at": 1_000.0, **facts, **fields}
    return Turn(lane=1, seq=2, job_id=3, turn=4, kind=kind, args=args, **known)


@dataclass
class Stub:
    """A runner that calls nothing, and ends as it is told."""

    ends: Ended
    asked: list[tuple[object, ...]] = field(default_factory=list)
    during: Callable[[], None] = lambda: None

    def carry_out(
        self,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        timeout_s: float | None,
        stop: StopSign,
        retry: Retry,
    ) -> Ended:
        self.asked.append((call, *args, timeout_s))
        self.during()
        return self.ends

    def check(self, call: Callable[..., Any]) -> None:
        raise AssertionError

    def close(self, timeout_s: float) -> None:
        raise AssertionError


def kind_of(**options: Any) -> Kind:
    registry = Registry()

    @registry.job(name="k", **options)
    def call() -> str:
        return "in a thread"

    return registry["k"]


def of(kind: Kind, turn: Turn, bench: Bench) -> TurnAttempt:
    return TurnAttempt(turn, kind, Tenure(1), arrived_s=0.0, bench=bench)


def settled(ends: Ended, **fields: Any) -> Settlement:
    bench = Bench(lambda: 0.0, None, apart=Stub(ends))
    return of(kind_of(runner="process"), turn_of("k", **fields), bench).run()


# Which


@pytest.mark.parametrize("own", [None, "thread", "process"])
@pytest.mark.parametrize("default", ["thread", "process"])
def test_a_kind_has_its_say_before_its_worker(own: Any, default: Any) -> None:
    stub = Stub(Done(Returned('"apart"')))
    bench = Bench(lambda: 0.0, None, apart=stub, runner=default)
    turn = turn_of("k", timeout_s=7.0)
    said = of(kind_of(runner=own, timeout_s=9.0), turn, bench).run()
    if (own or default) == "process":
        assert (said.result, stub.asked) == ('"apart"', [(attempt, turn, (), 7.0)])
    else:
        assert (said.result, stub.asked) == ('"in a thread"', [])


# How they end


def test_the_death_of_its_process_is_a_crash_and_says_how() -> None:
    said = settled(Lost("its process was ended by SIGSEGV"))
    assert (said.ending, said.error_type) == (Ending.LOST, "Lost")
    assert said.error == "its process was ended by SIGSEGV"
    assert said.began_at is not None


def test_a_timeout_is_a_failure_that_may_be_tried_again() -> None:
    raised = Raised(error_type="TimeoutError", error="late", again=True, reason="timeout")
    assert settled(raised).ending is Ending.RETRIED
    last = settled(raised, failures=3)
    assert (last.ending, last.reason) == (Ending.FAILED, "timeout")


def test_what_was_interrupted_is_given_back_and_where_it_was_cancelled_not_run_again() -> None:
    stub = Stub(Unbegun("stopped"))
    bench = Bench(lambda: 0.0, None, apart=stub, runner="process")
    stopped = of(kind_of(), turn_of("k"), bench)
    stub.during = stopped.stop.raise_
    assert stopped.run().ending is Ending.RELEASED
    cancelled = of(kind_of(), turn_of("k"), bench)
    stub.during = cancelled.cancel
    said = cancelled.run()
    assert (said.ending, said.reason) == (Ending.CANCELLED, "requested")
    assert cancelled.stop.raised


@pytest.mark.parametrize("once", [False, True])
def test_its_mark_is_cleared_when_its_process_has_died_unless_it_may_run_only_once(
    *, once: bool
) -> None:
    table = BegunTable.create(1)
    bench = Bench(lambda: 0.0, table, apart=Stub(Lost("")), runner="process")
    of(kind_of(), turn_of("k", at_most_once=once), bench).run()
    assert table.begun() == ({(3, 4)} if once else set())
    table.close()


def test_a_crash_is_counted_as_one_and_no_job_as_finished() -> None:
    kind, registry = kind_of(runner="process"), Registry()
    registry.add(kind)
    board = Board.create(1)
    turn, said = turn_of("k"), settled(Lost("gone"))
    Counts(board, registry).settled(1, [(turn, said, Verdict.ACCEPTED)], 0)
    counted = told(board.read())
    board.close()
    assert counted[families.CRASHES.name, "k"] == 1
    assert not [name for name, *_ in counted if name == families.FINISHED.name]


# In the process


def test_a_kind_that_loading_does_not_define_fails_with_what_to_do() -> None:
    outcome = attempt(turn_of("nobody-defines-this"))
    assert isinstance(outcome, Raised)
    assert (outcome.reason, outcome.again) == ("not-importable", False)
    assert "define it when its module is imported" in outcome.error


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Load]:
    path = tmp_path / "apart_app.py"
    path.write_text(APP)
    yield Load(target=str(path))
    assert not [name for name in DEFAULT if name.startswith("apart-")]


@pytest.mark.slow
def test_a_process_finds_kinds_by_their_names_and_gives_back_what_a_thread_would(app: Load) -> None:
    runner, stop = processes([app], LogFormat.TEXT, 0.1), StopSign()
    try:
        turn = turn_of("apart-here", '{"number":5}')
        outcome = run_apart(runner, kind_of(), turn, stop)
        assert isinstance(outcome, Returned)
        assert outcome.result is not None
        assert outcome.result.startswith("[5,")
        assert outcome.result.endswith(f',4,"{turn.uuid}"]')
        closure = run_apart(runner, kind_of(), turn_of("apart-closure"), stop)
        assert closure == Returned('"found by its name"')
        spawned = run_apart(runner, kind_of(), turn_of("apart-spawns"), stop)
        assert isinstance(spawned, Returned)
        first, second = spawned.spawned
        assert [edge.parent for edge in second.after] == [first.uuid]
        nan = run_apart(runner, kind_of(), turn_of("apart-nan"), stop)
        assert isinstance(nan, Raised)
        assert nan.reason == "result"
    finally:
        runner.close(5.0)
