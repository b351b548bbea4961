"""Exclusive jobs: what runs is stopped before anybody could take its worker for dead."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.world import Clock
from tests.worker.test_apart import Stub, turn_of

import timeball as tb
from timeball.action.context import StopSign
from timeball.action.kind import Kind
from timeball.action.registry import Registry
from timeball.core.outcomes import Returned, Unbegun
from timeball.core.states import Ending
from timeball.engine.runner import Done
from timeball.errors import UsageError
from timeball.store.memory import MemoryStore
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.begun import BegunTable
from timeball.worker.exclusive import GRACE, KILL_AT, STOP_AT, Guard, overdue
from timeball.worker.sweeper import Sweeper
from timeball.worker.tenure import Tenure

LEASE_S = 8.0
SECOND = 1_000_000_000


class Time:
    """A monotonic clock that both sides read."""

    def __init__(self) -> None:
        self.ns = 1_000 * SECOND

    def __call__(self) -> int:
        return self.ns

    def seconds(self) -> float:
        return self.ns / SECOND


@pytest.fixture
def table() -> Iterator[BegunTable]:
    table = BegunTable.create(2)
    yield table
    table.close()


def guarded(table: BegunTable) -> tuple[Time, Guard]:
    time = Time()
    guard = Guard(table, LEASE_S, monotonic_ns=time)
    guard.registered(1, time.ns)
    return time, guard


# What is said when


def test_an_attempt_is_stopped_after_half_a_lease_without_a_beat(table: BegunTable) -> None:
    time, guard = guarded(table)
    stop = StopSign()
    assert guard.admit(stop, 1)
    time.ns += int(STOP_AT * LEASE_S * SECOND) - 1
    guard.look()
    assert not stop.raised
    time.ns += 1
    guard.look()
    assert stop.raised


def test_a_turn_of_an_earlier_registration_never_begins_under_a_later_one(
    table: BegunTable,
) -> None:
    """Its worker was given up between the grant and the start: the turn is somebody else's."""
    time, guard = guarded(table)
    running = StopSign()
    assert guard.admit(running, 1)
    guard.expired()
    assert running.raised
    assert not guard.admit(StopSign(), 1)
    guard.registered(2, time.ns)
    assert not guard.admit(StopSign(), 1)
    assert guard.admit(StopSign(), 2)


def test_a_beat_puts_it_off(table: BegunTable) -> None:
    time, guard = guarded(table)
    stop = StopSign()
    assert guard.admit(stop, 1)
    for _ in range(10):
        time.ns += int(0.4 * LEASE_S * SECOND)
        table.hear(time.ns)
        guard.look()
    assert not stop.raised


def test_a_beat_counts_from_when_it_was_asked_for_and_a_late_answer_takes_none_back(
    table: BegunTable,
) -> None:
    table.hear(9 * SECOND)
    table.hear(7 * SECOND)
    assert table.heard_ns == 9 * SECOND


def test_none_begins_while_its_worker_is_cut_off(table: BegunTable) -> None:
    time, guard = guarded(table)
    time.ns += int(STOP_AT * LEASE_S * SECOND)
    assert not guard.admit(StopSign(), 1)
    assert table.exclusive == 0
    table.hear(time.ns)
    assert guard.admit(StopSign(), 1)


def test_the_supervisor_sees_how_many_are_left(table: BegunTable) -> None:
    _, guard = guarded(table)
    stops = [StopSign(), StopSign()]
    for stop in stops:
        guard.admit(stop, 1)
    assert table.exclusive == 2
    guard.leave(stops[0])
    assert table.exclusive == 1
    assert table.begun() == set(), "no turn is read where the beats are noted"


def test_the_last_means_is_used_after_the_first_and_before_the_lease_is_over() -> None:
    assert STOP_AT + GRACE < KILL_AT < 1.0


@given(
    beats=st.lists(st.floats(0.01, 2 * LEASE_S), max_size=12),
    looks=st.lists(st.floats(0.01, LEASE_S / 3), min_size=60, max_size=60),
    delay=st.floats(0.0, LEASE_S / 3),
)
def test_no_sweeper_gives_a_worker_up_before_its_exclusive_attempts_are_killed(
    beats: list[float], looks: list[float], delay: float
) -> None:
    """In virtual time: the beats come as they like, an answer late, and a sweeper looks on."""
    table, time, store = BegunTable.create(1), Time(), MemoryStore(Clock())
    worker = store.register("w", kinds=["a"], queues=["default"], lease_s=LEASE_S)
    table.hear(time.ns)
    sweeper = Sweeper(store, monotonic=time.seconds)
    gone_at = 0
    due = time.ns
    instants = [due := due + int(rest * SECOND) for rest in beats]
    for rest in looks:
        time.ns += int(rest * SECOND)
        while instants and instants[0] <= time.ns:
            asked_ns = instants.pop(0)
            # Written at any time between the question and the answer: at the earliest one here.
            if store.beat({worker}) and asked_ns + delay * SECOND <= time.ns:
                table.hear(asked_ns)
        if not gone_at and overdue(table, LEASE_S, KILL_AT, time.ns):
            gone_at = time.ns
        if sweeper.sweep():
            # The supervisor looks far oftener than this sweeper does.
            assert overdue(table, LEASE_S, KILL_AT, time.ns)
            break
    table.close()


# Attempts


def exclusive(table: BegunTable, ends: Returned | Unbegun) -> tuple[Time, TurnAttempt, Stub]:
    registry = Registry()

    @registry.job(name="k", exclusive=True)
    def call() -> None: ...

    time, guard = guarded(table)
    stub = Stub(Done(ends) if isinstance(ends, Returned) else ends)
    bench = Bench(lambda: 0.0, table, guard=guard, alone=stub)
    attempt = TurnAttempt(
        turn_of("k", uuid=uuid4()), registry["k"], Tenure(1), arrived_s=0.0, bench=bench
    )
    return time, attempt, stub


def test_an_exclusive_attempt_runs_apart_and_is_counted_while_it_does(table: BegunTable) -> None:
    _, attempt, stub = exclusive(table, Returned("1"))
    seen: list[int] = []
    stub.during = lambda: seen.append(table.exclusive)
    assert attempt.run().ending is Ending.SUCCEEDED
    assert (seen, table.exclusive) == ([1], 0)


def test_one_that_is_stopped_costs_no_retry(table: BegunTable) -> None:
    _, attempt, _ = exclusive(table, Unbegun("stopped"))
    assert attempt.run().ending is Ending.RELEASED


def test_one_that_may_not_begin_comes_again_and_costs_nothing(table: BegunTable) -> None:
    time, attempt, stub = exclusive(table, Returned())
    time.ns += int(LEASE_S * SECOND)
    said = attempt.run()
    assert (said.ending, said.began_at, stub.asked) == (Ending.SNOOZED, None, [])


# Definitions


def kind(**options: object) -> Kind:
    registry = Registry()

    @registry.job(name="k", exclusive=True, **options)
    def call(ctx: tb.Context) -> None: ...

    return registry["k"]


def test_what_could_not_be_killed_cannot_be_exclusive() -> None:
    registry = Registry()

    async def coroutine() -> None: ...

    with pytest.raises(UsageError, match="write a plain def"):
        registry.job(exclusive=True, name="a")(coroutine)
    with pytest.raises(UsageError, match="exclusive and to run in a thread"):
        kind(runner="thread")
    with pytest.raises(UsageError, match="exclusive and transactional"):
        kind(transactional=True)


def test_what_is_exclusive_runs_apart_whatever_its_worker_does_by_default() -> None:
    assert kind().runs_apart("thread")
    assert kind(runner="process").runs_apart("thread")
