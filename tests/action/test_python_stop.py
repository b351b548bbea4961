"""How an attempt is stopped: by its time, by its worker, by itself."""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import pytest
from tests.action.attempts import failure, kind, outcome, raising, turn

from timeball.action.context import Context, Snooze, StopSign
from timeball.action.python import carry_out_async
from timeball.core.outcomes import Outcome, Raised, Returned, Unbegun
from timeball.core.retry import Retry
from timeball.errors import UsageError


def test_a_coroutine_that_takes_too_long_is_cancelled_and_tried_again() -> None:
    cancelled = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    found = failure(slow, timeout_s=0.005, retry=Retry(on=(OSError,)))
    assert (found.reason, found.again) == ("timeout", True)
    assert "0.005 s" in found.error
    assert cancelled == [True]


def test_a_timeout_of_its_own_is_an_error_like_others() -> None:
    found = failure(raising(TimeoutError("the server"))[1], timeout_s=60)
    assert (found.error_type, found.reason) == ("TimeoutError", None)


def test_a_coroutine_that_ends_in_spite_of_its_timeout_has_succeeded() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    assert outcome(stubborn, timeout_s=0.005) == Returned('"done"')


def test_the_jobs_own_timeout_goes_before_the_kinds() -> None:
    async def slow() -> None:
        await asyncio.Event().wait()

    carried = carry_out_async(kind(slow, timeout_s=600), turn(timeout_s=0.005), StopSign())
    found = asyncio.run(carried)
    assert isinstance(found, Raised)
    assert found.reason == "timeout"


def test_a_cancelled_task_is_given_back_only_where_the_stop_was_asked_for() -> None:
    async def cancelled(*, asked: bool) -> Outcome:
        stop, running = StopSign(), asyncio.Event()

        async def job() -> None:
            running.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(carry_out_async(kind(job), turn(), stop))
        await running.wait()
        if asked:
            stop.raise_()
        task.cancel()
        return await task

    assert asyncio.run(cancelled(asked=True)) == Unbegun("stopped")
    assert isinstance(asyncio.run(cancelled(asked=False)), Raised)


def test_a_job_in_a_thread_can_see_that_it_should_stop() -> None:
    def job(ctx: Context) -> list[bool]:
        before = ctx.cancelled()
        ctx.stop.raise_()
        return [before, ctx.cancelled()]

    assert outcome(job) == Returned("[false,true]")


def test_a_job_in_a_thread_can_see_that_its_time_is_up() -> None:
    def job(ctx: Context) -> float | None:
        while not ctx.cancelled():
            threading.Event().wait(0.001)
        return ctx.timeout_s

    assert outcome(job, timeout_s=0.005) == Returned("0.005")


def test_a_stop_sign_calls_back_whenever_the_callback_comes() -> None:
    stop, called = StopSign(), []
    stop.when_raised(lambda: called.append("before"))
    assert not called
    stop.raise_()
    stop.when_raised(lambda: called.append("after"))
    assert called == ["before", "after"]


def test_the_log_says_which_job_it_is(caplog: pytest.LogCaptureFixture) -> None:
    def job(ctx: Context) -> None:
        ctx.log.warning("hello")

    outcome(job)
    (record,) = caplog.records
    assert record.__dict__["job"] == str(UUID(int=7))
    assert record.__dict__["kind"] == "job"


def test_a_snooze_of_ten_years_is_the_longest() -> None:
    Snooze(10 * 365 * 86_400)
    with pytest.raises(UsageError, match="ten years"):
        Snooze(11 * 366 * 86_400)
