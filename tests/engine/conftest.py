"""Schedulers that are audited when a test is over, and an engine without threads or time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from timeball import Scheduler
from timeball.engine.engine import Engine
from timeball.engine.handles import Attempt, Handle
from timeball.engine.options import Options
from timeball.engine.runner import Done

PATIENCE_S = 20.0
MS = 1_000_000


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.0005)


@pytest.fixture
def scheduler() -> Iterator[Callable[..., Scheduler]]:
    """Make schedulers; at the end each has broken no promise, and has left no thread."""
    made: list[Scheduler] = []
    before = set(threading.enumerate())

    def make(workers: int = 4, **options: Any) -> Scheduler:
        made.append(Scheduler(workers, **options))
        return made[-1]

    yield make
    for each in made:
        each.shutdown("drain", deadline_s=PATIENCE_S)
        assert each.violations() == []
        assert sum(each.report().ledger.causes.values()) >= 0
        balance(each)
    eventually(lambda: set(threading.enumerate()) <= before)


def balance(scheduler: Scheduler) -> None:
    """I25: the idle ledger balances, every cause has a time, and none is negative."""
    report = scheduler.report()
    ledger = report.ledger
    assert ledger.running_ns + sum(ledger.causes.values()) == report.workers * report.makespan_ns
    assert all(ns >= 0 for ns in ledger.causes.values())
    assert 0 <= report.efficiency <= 1


class Crew:
    """Nobody comes by himself."""

    def __init__(self) -> None:
        self.rings = 0

    def ring(self) -> None:
        self.rings += 1

    def current(self) -> Attempt | None:
        return None

    def cancel(self, attempt: Attempt) -> None:
        pass


class Table:
    """An engine whose rounds and clock are moved by hand."""

    def __init__(self, workers: int = 1, **options: Any) -> None:
        self.now_ns = 1_000 * MS
        options.setdefault("strict", "recorded")
        self.engine = Engine(
            Options(workers=workers, clock_ns=lambda: self.now_ns, **options), Handle, None
        )
        self.crew = Crew()
        self.engine.staff(self.crew)
        self.running: list[Attempt] = []

    def submit(self, call: Callable[..., Any] = lambda: None, *args: Any, **kwargs: Any) -> Handle:
        work = self.engine.submit(call, args, kwargs)
        assert isinstance(work, Handle)
        return work

    def begin(self) -> Attempt | None:
        return self._round(None, None)

    def end(self, attempt: Attempt | None = None, said: Any = None) -> Attempt | None:
        """End an attempt, by default the oldest, by what its call did; return the next."""
        attempt = self.running[0] if attempt is None else attempt
        self.running.remove(attempt)
        outcome = attempt.run() if said is None else said
        attempt.ended_ns = self.now_ns
        return self._round(attempt, outcome)

    def _round(self, done: Attempt | None, said: Any) -> Attempt | None:
        section = self.engine.section
        section.enter()
        attempt = self.engine.agenda.round(done, said, self.now_ns)
        section.leave()
        if attempt is not None:
            self.running.append(attempt)
        return attempt

    def started(self, take_ms: int = 0) -> list[Any]:
        """Run all that may run, one after the other; return the ids in the order of their start."""
        order: list[Any] = []
        attempt = self.begin()
        while attempt is not None:
            order.append(attempt.work.id)
            self.now_ns += take_ms * MS
            attempt = self.end(attempt)
        return order

    def pass_ms(self, ms: float) -> None:
        self.now_ns += round(ms * MS)

    def sound(self) -> None:
        assert self.engine.violations() == []


@pytest.fixture
def table() -> Iterator[Callable[..., Table]]:
    """Make engines that are moved by hand, and are audited at the end."""
    made: list[Table] = []

    def make(workers: int = 1, **options: Any) -> Table:
        made.append(Table(workers, **options))
        return made[-1]

    yield make
    for each in made:
        each.sound()


__all__ = ["MS", "PATIENCE_S", "Done", "Table", "eventually"]
