"""How far a job says that it is, is what its handle tells."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import timeball as tb
from timeball.chance import now
from timeball.core.notes import REMARK_MAX

PATIENCE_S = 30.0


def test_a_handle_tells_the_latest_word_while_the_job_runs_and_afterwards() -> None:
    said, go = threading.Event(), threading.Event()

    def work(ctx: tb.Context) -> None:
        ctx.progress(1, 3, "one")
        ctx.progress(2, 3, "two")
        said.set()
        assert go.wait(PATIENCE_S)
        ctx.progress(3)

    with tb.Scheduler(1) as scheduler:
        job = scheduler.submit(work)
        quiet = scheduler.submit(lambda: None)
        assert quiet.progress is None
        assert said.wait(PATIENCE_S)
        assert job.progress is not None
        assert job.progress[:4] == (2.0, 3.0, "two", 1)
        assert abs(now() - job.progress.at) < timedelta(hours=1)
        go.set()
        job.result()
        assert job.progress[:4] == (3.0, None, None, 1)


def test_a_coroutine_is_heard_too_and_each_attempt_says_of_which_it_is() -> None:
    async def work(ctx: tb.Context) -> int:
        before = ctx.attempt
        ctx.progress(before)
        if before == 1:
            raise OSError
        return before

    async def run() -> None:
        async with tb.AsyncScheduler(2, retry=tb.Retry(1, base_s=0.0, cap_s=0.0)) as scheduler:
            job = await scheduler.submit(work)
            assert await job == 2
            assert job.progress is not None
            assert job.progress[:4] == (2.0, None, None, 2)

    asyncio.run(run())


def test_what_is_no_number_is_left_out_and_a_remark_is_cut() -> None:
    def work(ctx: tb.Context) -> None:
        ctx.progress(1, note="x" * 10 * REMARK_MAX)
        ctx.progress("many")  # type: ignore[arg-type]  # as users do
        ctx.progress(float("nan"))

    with tb.Scheduler(1) as scheduler:
        job = scheduler.submit(work)
        job.result()
    assert job.progress is not None
    assert job.progress.done == 1.0
    assert len(job.progress.note or "") < 2 * REMARK_MAX


def test_what_a_forgotten_job_has_said_is_forgotten() -> None:
    def work(ctx: tb.Context) -> None:
        ctx.progress(1)

    with tb.Scheduler(1, keep_results=1) as scheduler:
        jobs = [scheduler.submit(work) for _ in range(5)]
        scheduler.wait()
        assert [job.progress is None for job in jobs] == [True] * 4 + [False]
