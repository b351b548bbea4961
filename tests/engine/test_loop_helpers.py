"""The threads of the event loop that coroutines run on."""

from __future__ import annotations

import asyncio
import threading

from timeball import Scheduler


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
