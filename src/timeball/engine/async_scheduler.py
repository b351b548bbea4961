"""`AsyncScheduler`: the same on the caller's event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, overload

from timeball.action.draft import Draft
from timeball.action.job_call import JobCall
from timeball.engine.crews import LoopCrew
from timeball.engine.handles import AsyncHandle, Work
from timeball.engine.options import Options, SchedulerOptions
from timeball.engine.progress import Progress
from timeball.engine.views import Mode, Views, check_mode

R = TypeVar("R")

_RUNNER_CLOSE_S: Final = 1.0


class AsyncScheduler(Views):
    """Runs coroutines on the event loop that it is used on; other callables in threads.

    Decisions, limits, records and report are those of `Scheduler`. Use it with ``async with``:
    its end waits for all jobs, or, if an exception ends it, for those that have begun. The
    methods that do not wait may be called from any thread.

    Args:
        workers: W, the most attempts at a time.
        **options: As for `Scheduler`.

    Raises:
        UsageError: An option is wrong.
    """

    def __init__(self, workers: int = 8, **options: Unpack[SchedulerOptions]) -> None:
        super().__init__(Options(workers=workers, **options), AsyncHandle)
        engine = self._engine
        self._crew = LoopCrew(engine.section, engine.breaks)
        engine.staff(self._crew)

    async def __aenter__(self) -> Self:
        self._crew.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.shutdown("drain", deadline_s=None)
        else:
            await self.shutdown("cancel")

    @overload
    async def submit(
        self, call: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any
    ) -> AsyncHandle[R]: ...

    @overload
    async def submit(
        self, call: Callable[..., R], /, *args: Any, **kwargs: Any
    ) -> AsyncHandle[R]: ...

    @overload
    async def submit(self, call: JobCall, /, **kwargs: Any) -> AsyncHandle[Any]: ...

    async def submit(
        self, call: Callable[..., Any] | JobCall, /, *args: Any, **kwargs: Any
    ) -> AsyncHandle[Any]:
        """Add a job and return its handle: ``await handle`` gives the result.

        Does not suspend, but to wait for room where there is a `max_pending`. See
        `Scheduler.submit`.
        """
        if not self._crew.is_open:
            self._crew.open()
        engine = self._engine
        handle: AsyncHandle[Any]
        if engine.room is None:
            handle = engine.submit(call, args, kwargs)
            return handle
        await engine.enter_room_async()
        with engine.room.held():
            handle = engine.submit(call, args, kwargs)
        return handle

    async def submit_many(
        self, call: Callable[..., Any], each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[AsyncHandle[Any]]:
        """Add one job for each mapping of arguments, with the same options; return handles."""
        return [await self.submit(call, **arguments, **options) for arguments in each]

    async def submit_all(self, drafts: Iterable[Draft]) -> list[AsyncHandle[Any]]:
        """Add different jobs, with edges among them, all or none. See `Scheduler.submit_all`."""
        if not self._crew.is_open:
            self._crew.open()
        engine = self._engine
        await engine.enter_room_async()
        with nullcontext() if engine.room is None else engine.room.held():
            handles: list[AsyncHandle[Any]] = engine.submit_all(drafts)
        return handles

    async def map(
        self, call: Callable[..., Any], /, *iterables: Iterable[Any], **options: Any
    ) -> AsyncIterator[Any]:
        """Call it with the first of each iterable, the second of each …, and yield the results.

        All are submitted at once, when the first result is asked for. See `Scheduler.map`.
        """
        columns = zip(*iterables, strict=False)
        handles = [await self.submit(call, *args, **options) for args in columns]
        for handle in handles:
            yield await handle

    def get(self, job_id: int | str) -> AsyncHandle[Any]:
        """Return the handle of a job; raise JobNotFound where there is none."""
        work = self._engine.find(job_id)
        assert isinstance(work, AsyncHandle)
        return work

    async def wait(
        self,
        handles: Iterable[Work | int | str] | None = None,
        timeout_s: float | None = None,
        *,
        progress: bool = False,
    ) -> None:
        """Wait until some jobs have ended, or all. See `Scheduler.wait`."""
        works = self._works(handles)
        shown = Progress(sys.stderr, lambda: self._progress(works)) if progress else None
        showing = None if shown is None else asyncio.create_task(shown.keep_showing())
        try:
            await self._engine.wait_async(works, timeout_s)
        finally:
            if shown is not None and showing is not None:
                showing.cancel()
                shown.show(last=True)

    async def shutdown(self, mode: Mode = "drain", *, deadline_s: float | None = 5.0) -> None:
        """Take in no more jobs and end; after it returns nothing starts.

        From a job it only gives the order, and returns at once. See `Scheduler.shutdown`.
        """
        check_mode(mode)
        engine = self._engine
        if engine.forked:
            return
        self._crew.open()
        engine.close(mode)
        if engine.section.mine or self._crew.current() is not None:
            return
        try:
            await engine.wait_async(None, deadline_s)
        except TimeoutError:
            self._give_up()
        await asyncio.to_thread(self._crew.close)
        if engine.runner is not None:
            await asyncio.to_thread(engine.runner.close, _RUNNER_CLOSE_S)
