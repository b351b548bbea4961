"""The same engine on the caller's event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.engine.conftest import PATIENCE_S

from timeball import AsyncScheduler, CancelAnswer, Context, Retry, SchedulerClosed, UsageError
from timeball.core.states import State
from timeball.errors import JobFailed

Body = Callable[[AsyncScheduler], Awaitable[Any]]


def on_a_loop(body: Body, workers: int = 4, **options: Any) -> None:
    """Run `body` with a scheduler; afterwards it has broken no promise and left no thread."""

    async def main() -> None:
        async with AsyncScheduler(workers, **options) as s:
            await asyncio.wait_for(body(s), PATIENCE_S)
        assert s.violations() == []
        ledger, report = s.report().ledger, s.report()
        running_ns = ledger.running_ns + sum(ledger.causes.values())
        assert running_ns == report.workers * report.makespan_ns
        assert len(asyncio.all_tasks()) == 1

    before = set(threading.enumerate())
    asyncio.run(main())
    assert set(threading.enumerate()) <= before


async def double(n: int) -> int:
    await asyncio.sleep(0)
    return 2 * n


def test_coroutines_and_functions_run_side_by_side() -> None:
    async def body(s: AsyncScheduler) -> None:
        first = await s.submit(double, 21)
        second = await s.submit(pow, 2, 5)
        where = await s.submit(lambda: threading.current_thread().name)
        assert (await first, await second.result()) == (42, 32)
        assert (await where).startswith("timeball-hand-")
        assert [value async for value in s.map(double, range(5))] == [0, 2, 4, 6, 8]
        many = await s.submit_many(double, [{"n": 1}, {"n": 2}], priority=7)
        await s.wait(many)
        assert s.get(many[0].id) is many[0]

    on_a_loop(body)


def test_never_more_than_so_many_at_a_time_in_the_order_in_which_they_came() -> None:
    running, most, order = 0, 0, []

    async def job(n: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(n)
        await asyncio.sleep(0.001)
        running -= 1

    async def body(s: AsyncScheduler) -> None:
        for n in range(30):
            await s.submit(job, n)
        await s.wait()

    on_a_loop(body, workers=3)
    assert most == 3
    assert order == list(range(30))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_whatever_a_coroutine_raises_the_loop_lives(error: type[BaseException]) -> None:
    async def dies() -> None:
        raise error

    async def body(s: AsyncScheduler) -> None:
        doomed = await s.submit(dies)
        with pytest.raises(JobFailed, match="failed"):
            await doomed
        assert await (await s.submit(double, 1)) == 2

    on_a_loop(body, workers=1)


def test_retries_and_instants_are_kept_by_the_loop_s_timer() -> None:
    tries: list[float] = []

    async def flaky() -> str:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise OSError
        return "done"

    async def body(s: AsyncScheduler) -> None:
        far = await s.submit(double, 1, delay_s=60)
        job = await s.submit(flaky, retry=Retry(2, base_s=0.01, jitter="none"))
        assert await job == "done"
        assert far.state is State.SCHEDULED
        assert far.cancel() is CancelAnswer.CANCELLED

    on_a_loop(body)
    assert tries[1] - tries[0] >= 0.01
    assert tries[2] - tries[1] >= 0.02


def test_cancelling_reaches_a_coroutine_and_a_function_in_a_thread() -> None:
    async def body(s: AsyncScheduler) -> None:
        started = asyncio.Event()

        async def waits() -> None:
            started.set()
            await asyncio.Event().wait()

        def looks(ctx: Context) -> str:
            while not ctx.cancelled():
                time.sleep(0.001)
            return "stopped"

        coroutine, function = await s.submit(waits), await s.submit(looks)
        await started.wait()
        while function.state is State.PENDING:
            await asyncio.sleep(0)
        assert coroutine.cancel() is function.cancel() is CancelAnswer.REQUESTED
        await s.wait()
        assert (coroutine.state, function.state) == (State.CANCELLED, State.SUCCEEDED)

    on_a_loop(body)


def test_a_coroutine_past_its_timeout_fails() -> None:
    async def body(s: AsyncScheduler) -> None:
        job = await s.submit(asyncio.sleep, 60, timeout_s=0.01)
        with pytest.raises(JobFailed, match=r"ran longer than its 0\.01 s"):
            await job

    on_a_loop(body)


def test_a_job_may_submit_and_await_but_not_in_a_circle() -> None:
    async def body(s: AsyncScheduler) -> None:
        async def parent() -> int:
            return await (await s.submit(double, 4))

        outer = await s.submit(parent)
        with pytest.raises(JobFailed, match="cannot end before"):
            await outer

    on_a_loop(body, workers=1)

    async def roomy(s: AsyncScheduler) -> None:
        async def parent() -> int:
            return await (await s.submit(double, 4))

        assert await (await s.submit(parent)) == 8

    on_a_loop(roomy, workers=2)


def test_other_threads_may_submit_through_the_loop_and_look() -> None:
    async def body(s: AsyncScheduler) -> None:
        loop = asyncio.get_running_loop()

        def elsewhere() -> int:
            job = asyncio.run_coroutine_threadsafe(s.submit(double, 5), loop).result(PATIENCE_S)
            assert sum(s.counts().values()) >= 1
            return asyncio.run_coroutine_threadsafe(job.result(), loop).result(PATIENCE_S)

        assert await asyncio.to_thread(elsewhere) == 10

    on_a_loop(body)


def test_shutdown_drains_cancels_or_aborts() -> None:
    async def main(mode: Any) -> list[State]:
        s = AsyncScheduler(workers=1)
        gate = asyncio.Event()
        jobs = [await s.submit(gate.wait), await s.submit(double, 1)]
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.02, gate.set)
        await s.shutdown(mode)
        with pytest.raises(SchedulerClosed):
            await s.submit(double, 1)
        assert s.violations() == []
        return [job.state for job in jobs]

    done, off = State.SUCCEEDED, State.CANCELLED
    assert asyncio.run(main("drain")) == [done, done]
    assert asyncio.run(main("cancel")) == [done, off]
    assert asyncio.run(main("abort")) == [off, off]


def test_what_does_not_end_in_time_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        s, started = AsyncScheduler(workers=1), asyncio.Event()

        async def stubborn() -> None:
            started.set()
            while True:
                try:
                    await gate.wait()
                    break
                except asyncio.CancelledError:
                    continue

        gate = asyncio.Event()
        job = await s.submit(stubborn)
        await started.wait()
        await s.shutdown("abort", deadline_s=0.02)
        assert job.state is State.CANCELLED
        gate.set()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert "given up" in capsys.readouterr().err


def test_an_exception_in_the_block_cancels_what_has_not_begun() -> None:
    jobs: list[Any] = []

    async def main() -> None:
        async with AsyncScheduler(workers=1) as s:
            jobs.extend([await s.submit(asyncio.sleep, 0.01), await s.submit(double, 1)])
            await asyncio.sleep(0.001)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
    assert [job.state for job in jobs] == [State.SUCCEEDED, State.CANCELLED]


def test_progress_is_shown_in_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def body(s: AsyncScheduler) -> None:
        await s.submit(double, 1)
        await s.wait(progress=True)

    on_a_loop(body)
    assert capsys.readouterr().err.endswith("1 of 1 jobs\n")


def test_wrong_options_are_refused() -> None:
    with pytest.raises(UsageError, match="1 or more"):
        AsyncScheduler(workers=0)
