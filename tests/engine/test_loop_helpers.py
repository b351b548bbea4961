"""The threads of the event loop that coroutines run on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from timeball import Scheduler

THREADS_MAX = 32  # of an executor, on a machine of any size


def test_threads_that_coroutines_have_used_end_with_the_scheduler() -> None:
    async def job() -> str:
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    before = set(threading.enumerate())
    with Scheduler(workers=2) as s:
        helper = s.submit(job)
    assert helper.result().startswith("asyncio")
    assert set(threading.enumerate()) <= before


def test_a_thread_that_never_returns_holds_up_no_end() -> None:
    begun, end = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        end.wait()

    async def job() -> None:
        await asyncio.to_thread(hangs)

    s = Scheduler(workers=2)
    s.submit(job)
    begun.wait()
    s.shutdown(mode="abort", deadline_s=0.1)
    assert not end.is_set()
    end.set()


def test_what_a_coroutine_has_left_in_line_does_not_start_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("timeball.engine.aio._LEFTOVERS_S", 0.02)
    end, before = threading.Event(), set(threading.enumerate())
    begun: list[int] = []

    def hangs(n: int) -> None:
        begun.append(n)
        end.wait(30)

    async def job() -> None:
        for n in range(100):  # more than there can be threads
            asyncio.get_running_loop().run_in_executor(None, hangs, n)

    s = Scheduler(workers=2)
    s.submit(job).result(30)
    s.shutdown()
    left = set(threading.enumerate()) - before
    for thread in sorted(left, key=lambda thread: thread.name != "timeball-loop"):
        if thread.name != "timeball-loop":
            end.set()  # no earlier: the loop has ended by now
        thread.join(30)
    assert len(begun) <= THREADS_MAX
