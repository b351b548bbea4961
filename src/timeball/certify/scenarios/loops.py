"""The asynchronous engine under the stepper: whatever its loop calls first, its promises hold."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Final

from timeball.certify import modelled
from timeball.certify.looped import run
from timeball.certify.overlay import Overlay
from timeball.certify.stepper import check
from timeball.certify.trial import Scenario, Trial
from timeball.core.rate import Rate
from timeball.core.records import CancelAnswer
from timeball.core.retry import Retry
from timeball.core.states import State
from timeball.errors import SchedulerClosed


async def _nothing() -> None:
    await asyncio.sleep(0)


class LoopTrial(Trial):
    """One `AsyncScheduler` in a scenario; its jobs are coroutines, or functions in threads."""

    def _make(self, workers: int, **options: Any) -> Any:
        return self.copies["timeball.engine.async_scheduler"].AsyncScheduler(workers, **options)

    async def add(
        self, name: str, body: Callable[[], Awaitable[Any]] = _nothing, **options: Any
    ) -> Any:
        """Submit a coroutine that is observed, and return its handle."""

        async def observed() -> Any:
            with self.called(name):
                try:
                    return await body()
                except asyncio.CancelledError:
                    self.ends[name] = State.CANCELLED
                    raise

        return self._know(await self.scheduler.submit(observed, id=name, **options))

    async def add_function(self, name: str) -> Any:
        """Submit a function that is observed, and return its handle."""

        def observed() -> None:
            with self.called(name):
                pass

        return self._know(await self.scheduler.submit(observed, id=name))

    async def wait_for(self, *jobs: Any) -> None:
        """Wait for jobs, or for all."""
        await self.scheduler.wait(jobs or None)
        left = [job for job in jobs or self.jobs if not job.done]
        check("wait", not left, f"the wait was over before {left}")

    def _know(self, job: Any) -> Any:
        self.jobs.append(job)
        return job


def on_loop(main: Callable[[Overlay], Coroutine[Any, Any, None]]) -> Callable[[Overlay], None]:
    """Return a scenario that runs on an event loop."""

    @wraps(main)
    def play(copies: Overlay) -> None:
        run(main(copies))

    return play


@on_loop
async def coroutines_for_two_slots(copies: Overlay) -> None:
    """Each is called once, never more than W at a time, whichever the loop steps first."""
    trial = LoopTrial(copies, 2)
    for name in "abcd":
        await trial.add(name)
    await trial.wait_for()
    trial.check_end()


@on_loop
async def functions_among_coroutines(copies: Overlay) -> None:
    """What threads hand back is heard, at whatever instant."""
    trial = LoopTrial(copies, 2)
    await trial.add_function("a")
    await trial.add("b")
    await trial.add_function("c")
    await trial.wait_for()
    trial.look()
    trial.check_end()
    await trial.scheduler.shutdown()


@on_loop
async def a_cancel_of_a_coroutine(copies: Overlay) -> None:
    """A cancel from another thread keeps it from starting, or ends it once."""
    trial = LoopTrial(copies, 1)
    answers: list[CancelAnswer] = []

    async def stays() -> None:
        await asyncio.sleep(5)

    job = await trial.add("a", stays)
    other = modelled.Thread(
        target=lambda: answers.append(trial.scheduler.cancel(job)), name="canceller"
    )
    other.start()
    await trial.add("b")
    await trial.wait_for()
    other.join()
    granted = answers == [CancelAnswer.CANCELLED]
    check("cancel", not (granted and trial.calls["a"]), "it was granted, and the job was called")
    asked = answers != [CancelAnswer.FINISHED]
    check("states", not asked or job.state is State.CANCELLED, f"{answers}, and it is {job.state}")
    trial.check_end()


@on_loop
async def a_wait_that_is_cancelled(copies: Overlay) -> None:
    """Whoever stops waiting as the job ends takes no slot with him."""
    trial = LoopTrial(copies, 1)
    job = await trial.add("a")
    waiting = asyncio.create_task(trial.scheduler.wait([job]))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await trial.wait_for(await trial.add("b"))
    await trial.wait_for()
    trial.check_end()


@on_loop
async def submitters_that_are_cancelled(copies: Overlay) -> None:
    """Who waits for room and is cancelled takes nobody's."""
    trial = LoopTrial(copies, 1, max_pending=1)
    adding = [asyncio.create_task(trial.add(name)) for name in "abc"]
    await asyncio.sleep(0)
    adding[1].cancel()
    await asyncio.wait(adding)
    await trial.wait_for(await trial.add("d"))
    await trial.wait_for()
    check("lost", len(trial.jobs) >= 3, f"accepted were {trial.jobs}")  # noqa: PLR2004 - a, c, d
    trial.check_end()


@on_loop
async def a_shutdown_on_the_loop(copies: Overlay) -> None:
    """What was accepted ends, what was not is refused, and nothing starts afterwards."""
    trial = LoopTrial(copies, 1)
    refused: list[str] = []

    async def submit() -> None:
        for name in "bc":
            try:
                await trial.add(name)
            except SchedulerClosed:
                refused.append(name)
            await asyncio.sleep(0)

    await trial.add("a")
    other = asyncio.create_task(submit())
    await trial.scheduler.shutdown("drain", deadline_s=None)
    started = set(trial.calls)
    await other
    await asyncio.sleep(60)
    check("closed", started == set(trial.calls), "a job started after the shutdown")
    left = [job for job in trial.jobs if not job.done]
    check("lost", not left, f"accepted, and left behind: {left}")


@on_loop
async def a_rate_and_a_retry_on_the_loop(copies: Overlay) -> None:
    """One timer serves permits and retries; the cap holds, and nothing is left asleep."""
    trial = LoopTrial(copies, 2, rate=Rate(1), strict="recorded", retry=Retry(1, base_s=1))
    tries: list[int] = []

    async def fails_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError

    await trial.add("a", fails_once)
    await trial.add("b")
    await trial.wait_for()
    check("states", all(job.state is State.SUCCEEDED for job in trial.jobs), f"{trial.jobs}")
    trial.check_rate(Rate(1))
    trial.check_end()


def coroutines_of_threads(copies: Overlay) -> None:
    """Threads and the loop beside them fill the same slots."""
    trial = Trial(copies, 2)
    trial.jobs.append(trial.scheduler.submit(body_of(trial, "a"), id="a"))
    trial.submit("b")
    trial.jobs.append(trial.scheduler.submit(body_of(trial, "c"), id="c"))
    trial.wait()
    trial.check_end()
    trial.scheduler.shutdown(deadline_s=None)


def body_of(trial: Trial, name: str) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a coroutine function that is observed."""

    async def body() -> None:
        with trial.called(name):
            await asyncio.sleep(0)

    return body


_STEPPED: Final = ("aio", "crews", "hands", "room", "section", "waits")

A_CANCEL_OF_A_COROUTINE: Final = Scenario(a_cancel_of_a_coroutine, delays=False, stepped=_STEPPED)
FUNCTIONS_AMONG_COROUTINES: Final = Scenario(functions_among_coroutines, stepped=_STEPPED)
ALL: Final = (
    Scenario(coroutines_for_two_slots, stepped=_STEPPED),
    FUNCTIONS_AMONG_COROUTINES,
    A_CANCEL_OF_A_COROUTINE,
    Scenario(a_wait_that_is_cancelled, stepped=_STEPPED),
    Scenario(submitters_that_are_cancelled, stepped=_STEPPED),
    Scenario(a_shutdown_on_the_loop, stepped=_STEPPED),
    Scenario(a_rate_and_a_retry_on_the_loop, stepped=_STEPPED),
    Scenario(coroutines_of_threads, stepped=(*_STEPPED, "threads", "doorbell")),
)
