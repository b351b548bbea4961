"""Threads and event loop together never run more attempts than there are slots."""

from __future__ import annotations

import asyncio
import contextvars
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from timeball.core.records import Settlement
from timeball.core.states import Ending
from timeball.engine.doorbell import Doorbell
from timeball.engine.kernel import Kernel


def settlement(number: int) -> Settlement:
    return Settlement(1, 1, number, 1, Ending.SUCCEEDED)


class Attempt:
    """An attempt that runs `body`, and counts who else does at the same time."""

    def __init__(
        self, number: int, *, is_async: bool = False, body: Callable[[], Any] | None = None
    ) -> None:
        self.number = number
        self.lock_ns = self.not_before_ns = 0
        self.variables = contextvars.Context()
        self.is_async = is_async
        self.body = body

    def run(self) -> Settlement:
        if self.body is not None:
            self.body()
        return settlement(self.number)

    async def run_async(self) -> Settlement:
        if self.body is not None:
            await self.body()
        return settlement(self.number)


class Rig:
    """A kernel and its doorbell."""

    def __init__(self, slots: int) -> None:
        self.bell = Doorbell()
        self.kernel: Kernel[Attempt] = Kernel(slots, self.bell.ring)
        self.ended: list[int] = []

    def settle(self, until: Callable[[], bool]) -> None:
        """Take what ends until something is so."""
        deadline = time.monotonic() + 10
        while True:
            self.ended += [said.job_id for _, said in self.kernel.take_ended()]
            if until():
                return
            assert time.monotonic() < deadline, self.ended
            self.bell.wait(0.05)


@pytest.fixture
def rig() -> Iterator[Callable[[int], Rig]]:
    rigs: list[Rig] = []
    before = set(threading.enumerate())

    def build(slots: int) -> Rig:
        rigs.append(Rig(slots))
        return rigs[-1]

    yield build
    for each in rigs:
        each.kernel.close()
    assert set(threading.enumerate()) <= before


class Crowd:
    """Counts those inside, and the most there ever were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = self.most = 0

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1


@pytest.mark.parametrize("slots", [1, 3])
def test_every_attempt_ends_once_and_the_slots_are_never_exceeded(
    rig: Callable[[int], Rig], slots: int
) -> None:
    crowd, box = Crowd(), rig(slots)

    def body() -> None:
        crowd.enter()
        time.sleep(0)
        crowd.leave()

    async def abody() -> None:
        crowd.enter()
        await asyncio.sleep(0)
        crowd.leave()

    chance = random.Random(7)
    attempts = [
        Attempt(n, is_async=is_async, body=abody if is_async else body)
        for n, is_async in enumerate(chance.choices([False, True], k=300))
    ]
    previous = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for start in range(0, 300, 30):
            box.kernel.offer(attempts[start : start + 30])
        box.settle(lambda: len(box.ended) == 300)
    finally:
        sys.setswitchinterval(previous)
    assert sorted(box.ended) == list(range(300))
    assert crowd.most <= slots
    assert box.kernel.idle


@pytest.mark.parametrize("kinds", ["threads", "loop", "both"])
def test_all_slots_run_at_once(rig: Callable[[int], Rig], kinds: str) -> None:
    """They meet at a barrier that only so many of them can open."""
    box, inside, all_here = rig(4), [], threading.Event()

    def arrive(n: int) -> None:
        inside.append(n)
        if len(inside) == 4:
            all_here.set()

    def meet(n: int) -> Callable[[], None]:
        def body() -> None:
            arrive(n)
            assert all_here.wait(10)

        return body

    def ameet(n: int) -> Callable[[], Any]:
        async def body() -> None:
            arrive(n)
            while not all_here.is_set():
                await asyncio.sleep(0.001)

        return body

    on_loop = {"threads": set(), "loop": {0, 1, 2, 3}, "both": {1, 3}}[kinds]
    box.kernel.offer(
        Attempt(n, is_async=n in on_loop, body=(ameet if n in on_loop else meet)(n))
        for n in range(4)
    )
    box.settle(lambda: len(box.ended) == 4)
    assert sorted(inside) == [0, 1, 2, 3]


def test_attempts_begin_in_the_order_in_which_they_came(rig: Callable[[int], Rig]) -> None:
    box, begun = rig(1), []

    def body(n: int) -> Callable[[], None]:
        return lambda: begun.append(n)

    def abody(n: int) -> Callable[[], Any]:
        async def run() -> None:
            begun.append(n)

        return run

    box.kernel.offer(
        Attempt(n, is_async=n % 3 == 0, body=abody(n) if n % 3 == 0 else body(n)) for n in range(50)
    )
    box.settle(lambda: len(box.ended) == 50)
    assert begun == list(range(50))


def test_a_slot_in_a_thread_goes_on_in_that_thread(rig: Callable[[int], Rig]) -> None:
    box, threads = rig(1), set()
    box.kernel.offer(
        Attempt(n, body=lambda: threads.add(threading.get_ident())) for n in range(100)
    )
    box.settle(lambda: len(box.ended) == 100)
    assert len(threads) == 1


def test_threads_are_made_when_needed_and_kept(rig: Callable[[int], Rig]) -> None:
    box, before = rig(64), threading.active_count()
    for n in range(20):
        box.kernel.offer([Attempt(n)])
        box.settle(lambda n=n: len(box.ended) == n + 1)  # type: ignore[misc]  # bound at once
    # The thread that ended an attempt may not have parked yet when the next one comes.
    assert threading.active_count() - before <= 5


@pytest.mark.parametrize("is_async", [False, True])
def test_an_attempt_that_has_ended_is_not_kept_alive(
    rig: Callable[[int], Rig], *, is_async: bool
) -> None:
    box = rig(1)
    attempt = Attempt(0, is_async=is_async)
    alive = weakref.ref(attempt)
    box.kernel.offer([attempt])
    del attempt
    box.settle(lambda: len(box.ended) == 1)
    deadline = time.monotonic() + 10
    while alive() is not None:  # its thread has yet to park
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_what_has_not_begun_can_be_taken_back(rig: Callable[[int], Rig]) -> None:
    box, gate = rig(1), threading.Event()
    box.kernel.offer([Attempt(0, body=gate.wait), Attempt(1), Attempt(2)])
    assert [attempt.number for attempt in box.kernel.withdraw()] == [1, 2]
    gate.set()
    box.settle(lambda: box.kernel.idle)
    assert box.ended == [0]


def test_what_was_abandoned_is_not_heard_any_more(rig: Callable[[int], Rig]) -> None:
    box, gate = rig(1), threading.Event()
    box.kernel.offer([Attempt(0, body=gate.wait)])
    assert [attempt.number for attempt in box.kernel.abandon()] == [0]
    gate.set()
    box.kernel.close()
    assert box.kernel.idle
    assert box.kernel.take_ended() == []


def test_cancelling_reaches_attempts_that_have_taken_their_first_step(
    rig: Callable[[int], Rig],
) -> None:
    box, begun, cancelled = rig(3), [], []

    def body(n: int) -> Callable[[], Any]:
        async def run() -> None:
            begun.append(n)
            box.bell.ring()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(n)

        return run

    box.kernel.offer(Attempt(n, is_async=True, body=body(n)) for n in range(3))
    box.settle(lambda: len(begun) == 3)
    box.kernel.cancel()
    box.settle(lambda: len(box.ended) == 3)
    assert sorted(cancelled) == [0, 1, 2]


def test_one_attempt_on_the_loop_cannot_reach_the_next(rig: Callable[[int], Rig]) -> None:
    box, seen = rig(1), []
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    def body(n: int) -> Callable[[], Any]:
        async def run() -> None:
            seen.append(variable.get(-1))
            variable.set(n)
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()
            task.cancel()  # takes hold at a next await, which never comes

        return run

    box.kernel.offer(Attempt(n, is_async=True, body=body(n)) for n in range(5))
    box.settle(lambda: len(box.ended) == 5)
    assert seen == [-1] * 5


def test_the_loop_survives_a_task_that_a_job_left_behind(
    rig: Callable[[int], Rig], caplog: pytest.LogCaptureFixture
) -> None:
    box, left = rig(1), []

    async def exits() -> None:
        raise SystemExit(3)

    async def leaves() -> None:
        left.append(asyncio.create_task(exits()))

    box.kernel.offer(
        [Attempt(0, is_async=True, body=leaves), *(Attempt(n, is_async=True) for n in range(1, 5))]
    )
    box.settle(lambda: len(box.ended) == 5)
    box.kernel.close()
    assert isinstance(left[0].exception(), SystemExit)
    assert "SystemExit(3)" in caplog.text


def test_closing_cancels_tasks_that_jobs_left_behind(rig: Callable[[int], Rig]) -> None:
    box, left = rig(1), []

    async def leaves() -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))

    box.kernel.offer([Attempt(0, is_async=True, body=leaves)])
    box.settle(lambda: len(box.ended) == 1)
    box.kernel.close()
    assert left[0].cancelled()


def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeball.engine.kernel._CLOSE_S", 0.01)
    box, gate = Rig(2), threading.Event()

    async def blocks() -> None:
        gate.wait()

    box.kernel.offer([Attempt(0, body=gate.wait), Attempt(1, is_async=True, body=blocks)])
    before = time.monotonic()
    box.kernel.close()
    assert time.monotonic() - before < 5
    gate.set()
    box.kernel.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_of_ours_is_noticed(rig: Callable[[int], Rig]) -> None:
    box = rig(1)

    def bug() -> None:
        raise AssertionError

    box.kernel.offer([Attempt(0, body=bug)])
    box.settle(lambda: box.kernel.broken)
    assert not box.kernel.idle


# The bell


def test_idle_threads_and_the_loop_wake_for_the_next_instant(rig: Callable[[int], Rig]) -> None:
    box = rig(3)
    began: dict[int, int] = {}
    now_ns = time.monotonic_ns()
    due = {n: now_ns + wait_ms * 1_000_000 for n, wait_ms in enumerate((40, 20, 0, 30))}

    async def on_loop() -> None:
        began[3] = time.monotonic_ns()

    for n, at_ns in due.items():
        body = on_loop if n == 3 else (lambda n=n: began.update({n: time.monotonic_ns()}))
        attempt = Attempt(n, is_async=n == 3, body=body)
        attempt.not_before_ns = at_ns
        box.kernel.offer([attempt])
    box.settle(lambda: len(box.ended) == 4)
    assert all(began[n] >= at_ns for n, at_ns in due.items())


def test_no_ring_is_lost_and_many_are_one() -> None:
    bell = Doorbell()
    for _ in range(3):
        bell.ring()
    bell.wait(10)
    before = time.monotonic()
    bell.wait(0.01)
    assert time.monotonic() - before >= 0.01
    ringer = threading.Thread(target=bell.ring)
    ringer.start()
    bell.wait(float("inf"))
    ringer.join()
