"""Nobody lines up for a lock whose holder only lacks the interpreter: so no convoy begins."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from timeball import Rate
from timeball.engine.gate import JobLimiter
from timeball.engine.locks import YIELDS
from timeball.engine.section import Section
from timeball.engine.slots import Slots

FREED_AFTER = pytest.mark.parametrize("yields", [1, 3])


class TakenLock:
    """A lock that somebody has until others have given way `yields` times; notes who lines up."""

    def __init__(self, yields: int) -> None:
        self.left = yields
        self.slept: list[float] = []
        self.lined_up = 0

    def locked(self) -> bool:
        return self.left > 0

    def acquire(self, blocking: bool = True) -> bool:  # noqa: FBT001, FBT002 - as in threading
        self.lined_up += self.locked() and blocking
        return blocking or not self.locked()

    def release(self) -> None:
        pass

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.left -= 1


class Ticks:
    """A clock that moves by one at each reading."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns


Taken = Callable[[int], TakenLock]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    def make(yields: int) -> TakenLock:
        lock = TakenLock(yields)
        monkeypatch.setattr(time, "sleep", lock.sleep)
        return lock

    return make


def section_of(lock: TakenLock) -> Section:
    section = Section(Slots(1, lambda: None), Ticks())
    section.lock = lock
    return section


def test_a_free_section_is_entered_at_once_and_nothing_is_timed(taken: Taken) -> None:
    section = section_of(lock := taken(0))
    assert section.enter() == 0
    assert (section.lock_wait_ns, section.contended, section.clock_ns()) == (0, 0, 1)
    assert (lock.slept, lock.lined_up) == ([], 0)


@FREED_AFTER
def test_who_finds_the_section_taken_gives_way_and_does_not_line_up(taken, yields) -> None:
    section = section_of(lock := taken(yields))
    assert section.enter() == section.lock_wait_ns == 1
    assert section.contended == 1
    assert (lock.slept, lock.lined_up) == ([0] * yields, 0)


def test_who_gave_way_in_vain_lines_up_at_last(taken: Taken) -> None:
    section = section_of(lock := taken(YIELDS + 1))
    assert section.enter() == section.lock_wait_ns == 1
    assert (len(lock.slept), lock.lined_up) == (YIELDS, 1)


@FREED_AFTER
def test_nor_does_who_asks_a_limiter(taken: Taken, yields: int) -> None:
    limiter = JobLimiter(Rate(2))
    limiter._lock = lock = taken(yields)
    limiter.acquire()
    assert (lock.slept, lock.lined_up) == ([0] * yields, 0)
