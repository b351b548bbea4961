"""A worker that a job keeps from turning is noticed, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Event
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.engine.kernel import Kernel
from timeball.observe import families
from timeball.observe.transitions import Happening, Transition
from timeball.worker.begun import BegunTable
from timeball.worker.process import ChildProcess
from timeball.worker.pulse import LOOK_MAX_S, Pulse, Stall, Stuck, Watchdog, bound_s
from timeball.worker.telemetry import Crew, Telemetry

LOOK_S = 0.25


class Watched:
    """A child of virtual time, and the watchdog that looks at it."""

    def __init__(self, lease_s: float = 1.0) -> None:
        self.table = BegunTable.create(1)
        self.loop: list[Callable[[], None]] = []
        self.pulse = Pulse(self.table, lease_s, self._ask)
        self.frozen = self.holds_lock = self.blocks_loop = False
        self.now = 0.0
        self.dog = Watchdog(lease_s, 0.0, lambda: self.frozen)

    def _ask(self, back: Callable[[], None]) -> bool:
        self.loop.append(back)
        return True

    def turn(self) -> None:
        """Do as a child does in the time between two pulses."""
        if self.frozen or self.holds_lock:
            return
        self.pulse.beat()
        while self.loop and not self.blocks_loop:
            self.loop.pop(0)()

    def look(self) -> list[Stall]:
        return self.dog.look(self.table.pulse, self.table.confirmed, self.now)

    def after(self, seconds: float) -> list[Stall]:
        """What is told in that time."""
        told = []
        for _ in range(round(seconds / LOOK_S)):
            for _ in range(2):
                self.turn()
            self.now += LOOK_S
            told += self.look()
        return told


@pytest.fixture
def child() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.table.close()


@pytest.mark.parametrize("stuck", Stuck)
def test_what_stands_still_is_told_once_and_once_more_when_it_is_over(
    child: Watched, stuck: Stuck
) -> None:
    fault = {Stuck.INTERPRETER: "holds_lock", Stuck.EVENT_LOOP: "blocks_loop"}[stuck]
    assert child.after(60) == []
    setattr(child, fault, True)
    (begun,) = child.after(10)
    assert begun[::2] == (stuck, False)
    assert bound_s(1.0) <= begun.for_s <= bound_s(1.0) + 3 * LOOK_S
    setattr(child, fault, False)
    (over,) = child.after(60)
    assert over[::2] == (stuck, True)
    assert over.for_s == pytest.approx(10, abs=3 * LOOK_S)
    setattr(child, fault, True)
    assert [each.over for each in child.after(10)] == [False]


@pytest.mark.parametrize("fault", ["holds_lock", "blocks_loop"])
def test_what_is_shorter_than_the_bound_is_not_told(child: Watched, fault: str) -> None:
    for _ in range(20):
        setattr(child, fault, True)
        assert child.after(0.75) == []
        setattr(child, fault, False)
        assert child.after(0.5) == []


def test_one_fault_is_not_told_as_two(child: Watched) -> None:
    """A job that keeps the lock keeps the event loop from turning too."""
    child.after(2)
    child.holds_lock = True
    assert {each.stuck for each in child.after(60)} == {Stuck.INTERPRETER}
    child.holds_lock = False
    assert {each.stuck for each in child.after(60)} == {Stuck.INTERPRETER}


def test_a_process_that_is_stopped_from_outside_is_not_told(child: Watched) -> None:
    child.after(2)
    child.frozen = True
    assert child.after(600) == []
    child.frozen = False
    assert child.after(60) == []


@given(st.floats(0, 1e9), st.integers(0, 7))
def test_a_gap_in_which_the_supervisor_stood_still_too_counts_as_one_short_look(
    gap_s: float, before: int
) -> None:
    """The whole group was stopped, or the machine was asleep, in the middle of a pulse."""
    child = Watched()
    child.after(2 + before * LOOK_S)
    child.now += gap_s
    assert child.look() == []
    assert child.after(10) == []
    child.table.close()


def test_a_gap_in_a_stall_adds_no_more_than_a_look(child: Watched) -> None:
    child.after(2)
    child.holds_lock = True
    child.after(3)
    child.now += 1e6
    child.look()
    child.holds_lock = False
    (over,) = child.after(1)
    assert over.for_s <= 3 + LOOK_MAX_S + 2 * LOOK_S


def test_who_does_not_count_yet_or_any_more_is_not_watched(child: Watched) -> None:
    child.holds_lock = True
    assert child.after(600) == []
    child.holds_lock = False
    child.after(2)
    done = Event()
    done.set()
    child.pulse.run(done)
    child.holds_lock = True
    assert child.after(600) == []


@given(st.floats(0.01, 1e6))
def test_the_longer_the_lease_the_later_it_is_told(lease_s: float) -> None:
    bounds = [bound_s(part * lease_s) for part in (0.5, 1.0, 2.0)]
    assert all(shorter <= longer for shorter, longer in pairwise(bounds))
    assert bounds[1] == max(1.0, lease_s / 4)


def test_a_loop_that_nothing_has_opened_and_one_that_is_closed_confirm_nothing() -> None:
    kernel: Kernel[Mock] = Kernel(1, lambda: None)
    assert not kernel.ask_loop(lambda: None)
    kernel.close()
    assert not kernel.ask_loop(lambda: None)


def test_a_loop_that_turns_answers() -> None:
    kernel: Kernel[Mock] = Kernel(1, lambda: None)
    kernel._loop._open()
    answered = Event()
    assert kernel.ask_loop(answered.set)
    assert answered.wait(30)
    kernel.close()


def test_a_worker_without_an_event_loop_confirms_for_itself() -> None:
    table = BegunTable.create(1)
    pulse = Pulse(table, 1.0, lambda _: False)
    for count in (1, 2, 3):
        pulse.beat()
        assert (table.pulse, table.confirmed) == (count, count)
    table.close()


def test_counts_are_no_rows_of_the_table() -> None:
    table = BegunTable.create(1)
    table.pulse, table.confirmed = 7, 6
    assert table.began() == {}
    table.close()


def test_a_stall_is_a_warning_that_names_the_jobs_and_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crew = Crew(children=1, ready=1, slots=1, running=1, seen_at=0.0, stopping=False)
    telemetry = Telemetry(("127.0.0.1", 0), lambda: crew, Mock(), ())
    telemetry.start()
    child = Mock(spec=ChildProcess, workers=frozenset({3}), jobs=list(range(50)))
    stalls = [Stall(Stuck.EVENT_LOOP, 1.234, over=False), Stall(Stuck.EVENT_LOOP, 9.0, over=True)]
    child.stalls.side_effect = [[each] for each in stalls]
    for _ in stalls:
        telemetry.watch([child], 0.0)
    begun, over = (record.msg for record in caplog.records)
    assert isinstance(begun, Transition)
    assert "await" in (begun.advice or "")
    assert begun._replace(advice=None) == Transition(
        Happening.WORKER_STALLED,
        worker=3, reason="event_loop", jobs=list(range(10)), stalled_s=1.23,
    )  # fmt: skip
    assert over == Transition(
        Happening.WORKER_GOES_ON, worker=3, reason="event_loop", stalled_s=9.0
    )
    told = telemetry._totals.read()
    telemetry.close()
    assert told[families.STALLS.name, ("event_loop",)][0] == 1
    assert told[families.STALLS.name, ("interpreter",)][0] == 0
