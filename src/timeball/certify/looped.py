"""An event loop that runs under the stepper: one callback at a time, the next one by choice.

A real loop calls what is ready in the order in which it was said. Here the chooser says which of
it comes next, so whatever holds here does not rest on that order. Time is the stepper's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, Final, TypeVar

from timeball.certify import modelled
from timeball.certify.stepper import Abandoned, Actor, here

R = TypeVar("R")


class Loop:
    """As much of an event loop as schedulers use, for the thread that runs it."""

    def __init__(self) -> None:
        self._this: Any = self  # what it lacks of the abstract loop, nobody here asks for
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._said = 0
        self._stopping = self._closed = self._running = False

    # What the stepper asks

    def ready(self) -> bool:
        """Whether there is something to call."""
        return bool(self._ready)

    @property
    def owner(self) -> Actor | None:
        """Nobody: whoever has something for it may end its wait."""
        return None

    def __str__(self) -> str:
        return "something for the event loop to call"

    # Running

    def run_forever(self) -> None:
        """Call what is ready, until `stop`."""
        asyncio._set_running_loop(self._this)  # noqa: SLF001 - made for those who write loops
        self._running = True
        try:
            while not self._stopping:
                self._call_one()
        except Abandoned:
            self._abandon()
            raise
        finally:
            self._stopping = self._running = False
            asyncio._set_running_loop(None)  # noqa: SLF001 - see above

    def run_until_complete(self, future: Any) -> Any:
        """Run until `future` is done, and return its result."""
        task = asyncio.ensure_future(future, loop=self._this)
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        return task.result()

    def stop(self) -> None:
        """End `run_forever` after this callback."""
        self._stopping = True

    def close(self) -> None:
        """Call nothing any more."""
        self._closed = True

    def set_default_executor(self, executor: object) -> None:
        """Never use it: what its threads would do, the stepper's own do."""

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._running

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: no scenario leaves a generator behind."""

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """End the run: no callback may raise. What is said of tasks that are let go is no news."""
        if "handle" in context:
            here().stepper.end("crash", repr(context["exception"]))

    def _abandon(self) -> None:
        for task in asyncio.all_tasks(self._this):
            # What its finally says is heard by nobody any more.
            with suppress(BaseException):
                task.get_coro().close()

    def _call_one(self) -> None:
        stepper = here().stepper
        while not self._ready:
            until = self._timers[0][0] if self._timers else None
            stepper.wait(self, None if until is None else until - self.time())
            self._take_timers()
        handle = self._ready.pop(stepper.pick(len(self._ready)))
        if not handle.cancelled():
            handle._run()  # noqa: SLF001 - as every loop does

    def _take_timers(self) -> None:
        while self._timers and self._timers[0][0] <= self.time():
            self._ready.append(heappop(self._timers)[2])

    # What is said to it

    def time(self) -> float:
        """Return virtual time in seconds."""
        return modelled.monotonic_ns() / 1e9

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Have it called."""
        handle = asyncio.Handle(callback, args, self._this, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Have it called; from any thread."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have it called after so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have it called at that instant."""
        handle = asyncio.TimerHandle(when, callback, args, self._this, context)
        self._said += 1
        heappush(self._timers, (when, self._said, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # it is found to be cancelled when it is due

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self._this)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Return a task of this loop."""
        return asyncio.Task(coro, loop=self._this, **options)

    def run_in_executor(self, executor: None, func: Callable[..., R], *args: Any) -> Any:
        """Call it in a thread of its own, and return a future of what it returns."""
        future: asyncio.Future[R] = self.create_future()

        def work() -> None:
            value = func(*args)
            self.call_soon_threadsafe(future.set_result, value)

        modelled.Thread(target=work, name="executor").start()
        return future


def run(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine, on a loop of its own, in this thread."""
    loop = Loop()
    try:
        value: R = loop.run_until_complete(main)
        return value
    finally:
        loop.close()


ASYNCIO: Final = modelled.module(asyncio, new_event_loop=Loop)
"""What copies find that import asyncio."""
