"""The room of a bounded queue: whatever comes of a submission, no place is lost and none is won."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import timeball as tb
from timeball import AsyncScheduler, Context, Scheduler
from timeball.errors import UsageError

SIZE = 2


def spawns(s: Scheduler) -> None:
    def split(ctx: Context) -> None:
        for _ in range(3 * SIZE):
            ctx.spawn(int)

    s.submit(split)


def submits(s: Scheduler) -> None:
    s.submit(lambda: [s.submit(int) for _ in range(3 * SIZE)])


def submits_drafts(s: Scheduler) -> None:
    s.submit(lambda: s.submit_all([tb.draft(int) for _ in range(3 * SIZE)]))


def is_refused(s: Scheduler) -> None:
    with pytest.raises(UsageError):
        s.submit(int, priority=77)


def names_one_twice(s: Scheduler) -> None:
    s.submit(int, id="same")
    with pytest.raises(UsageError):
        s.submit(int, id="same")


def drafts_are_refused(s: Scheduler) -> None:
    with pytest.raises(UsageError):
        s.submit_all([tb.draft(int), tb.draft(int, priority=77)])


def job_is_refused(s: Scheduler) -> None:
    s.submit(is_refused, s)


CASES: list[Callable[[Scheduler], Any]] = [
    *(spawns, submits, submits_drafts),
    *(is_refused, names_one_twice, drafts_are_refused, job_is_refused),
    lambda s: s.submit_all([]),
    lambda s: s.submit_all([tb.draft(int) for _ in range(3 * SIZE)]),
    lambda s: s.submit(int, delay_s=3600).cancel(),
]


def places(s: Scheduler) -> int:
    """How many jobs find room while none can begin."""
    begun, gate, given = threading.Event(), threading.Event(), threading.Semaphore(0)
    with s:

        def block() -> None:
            begun.set()
            gate.wait(30)

        s.submit(block)
        assert begun.wait(30)
        room = s._engine.room
        assert room is not None

        def fill() -> None:
            for _ in range(3 * SIZE):
                s.submit(int)
                given.release()

        thread = threading.Thread(target=fill)
        thread.start()
        while not room._line and thread.is_alive():
            thread.join(0.001)
        found = given._value
        gate.set()
        thread.join(30)
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_has_been_does_not_change_how_many_may_wait(case: Callable[[Scheduler], Any]) -> None:
    s = Scheduler(workers=1, max_pending=SIZE)
    case(s)
    s.wait(timeout_s=30)
    assert places(s) == SIZE


def test_refusals_leave_room_on_the_event_loop_too() -> None:
    async def run() -> int:
        async with AsyncScheduler(workers=1, max_pending=SIZE) as s:
            for _ in range(SIZE + 1):
                assert await s.submit_all([]) == []
                with pytest.raises(UsageError):
                    await s.submit(int, priority=77)
            async with asyncio.timeout(30):
                return int(await (await s.submit(pow, 2, 3)))

    assert asyncio.run(run()) == 8
