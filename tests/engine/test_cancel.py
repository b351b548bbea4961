"""Cancelling, and how jobs steer themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.conftest import PATIENCE_S, eventually

from timeball import Cancel, Context, Retry, Scheduler, Snooze, job
from timeball.core.records import CancelAnswer
from timeball.core.states import State
from timeball.errors import JobFailed

Make = Callable[..., Scheduler]


def test_what_is_cancelled_before_it_starts_never_starts(scheduler: Make) -> None:
    gate, ran, s = threading.Event(), [], scheduler(workers=1)
    s.submit(gate.wait)
    handle = s.submit(ran.append, 1)
    child = s.submit(ran.append, 2, after=[handle])
    assert handle.cancel() is CancelAnswer.CANCELLED
    assert (handle.state, child.state) == (State.CANCELLED, State.SKIPPED)
    assert handle.cancel() is CancelAnswer.FINISHED
    gate.set()
    s.wait(timeout_s=PATIENCE_S)
    assert ran == []
    with pytest.raises(JobFailed, match="cancelled"):
        handle.result()


def test_a_coroutine_is_cancelled_once_and_its_job_with_it(scheduler: Make) -> None:
    started, seen, s = threading.Event(), [], scheduler()

    async def waits() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]
            raise

    handle = s.submit(waits, retry=Retry(5, base_s=0))
    assert started.wait(PATIENCE_S)
    assert handle.cancel() is CancelAnswer.REQUESTED
    assert handle.cancel() in {CancelAnswer.REQUESTED, CancelAnswer.FINISHED}
    s.wait(timeout_s=PATIENCE_S)
    assert (handle.state, seen) == (State.CANCELLED, [1])


def test_a_running_job_that_returns_all_the_same_has_succeeded(scheduler: Make) -> None:
    gate, started, s = threading.Event(), threading.Event(), scheduler()

    def body() -> str:
        started.set()
        gate.wait(PATIENCE_S)
        return "done"

    handle = s.submit(body)
    assert started.wait(PATIENCE_S)
    assert handle.cancel() is CancelAnswer.REQUESTED
    gate.set()
    assert handle.result(PATIENCE_S) == "done"
    assert handle.cancel_requested


def test_a_job_that_was_asked_to_stop_is_not_tried_again(scheduler: Make) -> None:
    gate, started, s = threading.Event(), threading.Event(), scheduler()

    def body() -> None:
        started.set()
        gate.wait(PATIENCE_S)
        raise OSError

    handle = s.submit(body, retry=Retry(3, base_s=0))
    assert started.wait(PATIENCE_S)
    handle.cancel()
    gate.set()
    s.wait(timeout_s=PATIENCE_S)
    assert (handle.state, len(s.records())) == (State.CANCELLED, 1)


def test_a_job_in_a_thread_sees_that_it_should_stop(scheduler: Make) -> None:
    started, s = threading.Event(), scheduler()

    def body(n: int, ctx: Context) -> str:
        started.set()
        eventually(ctx.cancelled)
        return f"stopped {n}, attempt {ctx.attempt}"

    handle = s.submit(body, 3)
    assert started.wait(PATIENCE_S)
    handle.cancel()
    assert handle.result(PATIENCE_S) == "stopped 3, attempt 1"


def test_jobs_steer_by_what_they_return(scheduler: Make) -> None:
    tries, s = [], scheduler()

    def snoozes() -> Any:
        tries.append(0)
        return Snooze(0.001) if len(tries) < 3 else "awake"

    assert s.submit(snoozes).result(PATIENCE_S) == "awake"
    handle = s.submit(lambda: Cancel("no longer needed"))
    s.wait(timeout_s=PATIENCE_S)
    assert (handle.state, handle.reason) == (State.CANCELLED, "no longer needed")


def test_a_kind_brings_its_options(scheduler: Make) -> None:
    @job(name="odd.flaky", retry=Retry(1, base_s=0, on=(OSError,)), priority=7, timeout_s=9.0)
    def flaky(n: int, ctx: Context) -> int:
        if ctx.attempt == 1:
            raise OSError
        return n

    s = scheduler()
    handle = s.submit(flaky, n=3)
    assert handle.result(PATIENCE_S) == 3
    form = handle.form
    assert (form.name, form.priority, form.timeout_s) == ("odd.flaky", 7, 9.0)
    assert s.submit(flaky, 4, priority=1, timeout_s=None).form.priority == 1
