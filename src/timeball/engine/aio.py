"""One event loop, in a thread of its own, that carries out asynchronous attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from threading import Lock, Thread
from typing import Final, Generic

from timeball.core.records import Settlement
from timeball.engine.slots import A

_LEFTOVERS_S: Final = 0.5

_log = logging.getLogger(__name__)


class EventLoop(Generic[A]):
    """An event loop that is opened by the first attempt.

    Args:
        after: Told how an attempt ended; returns the one to begin here in its place.
        broken: Called when carrying out an attempt met a bug of ours.
    """

    def __init__(
        self, after: Callable[[A, Settlement], A | None], broken: Callable[[], None]
    ) -> None:
        self._after = after
        self._broken = broken
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._closing = False
        self._tasks: dict[A, asyncio.Task[None]] = {}
        """Of the attempts that have taken their first step."""

    def start(self, attempts: Sequence[A]) -> None:
        """Begin attempts, from any thread."""
        with self._lock:
            if not self._closing:  # else they have been abandoned
                loop = self._loop or self._open()
                loop.call_soon_threadsafe(self._begin, attempts)

    def cancel(self) -> None:
        """Cancel, once, every attempt that has taken its first step."""
        if self._loop is not None:
            # By two hops: those begun just before take their first step in between.
            self._loop.call_soon_threadsafe(self._loop.call_soon, self._cancel)

    def close(self, timeout_s: float) -> None:
        """Cancel what is left and end the loop; a step that never returns is left behind."""
        with self._lock:
            closing, self._closing = self._closing, True
        if self._loop is not None and self._thread is not None:
            if not closing:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout_s)

    def _open(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(
            target=self._run, args=(self._loop,), name="timeball-loop", daemon=True
        )
        self._thread.start()
        return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # Of a task that a job has made itself; asyncio lets these two through.
                _log.warning("a task that a job left behind raised %r", error)
        leftovers = asyncio.all_tasks(loop)
        for task in leftovers:
            task.cancel()
        if leftovers:
            loop.run_until_complete(asyncio.wait(leftovers, timeout=_LEFTOVERS_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _begin(self, attempts: Sequence[A]) -> None:
        assert self._loop is not None
        for attempt in attempts:
            # A task and variables of its own each: nothing that one attempt does to its task
            # or leaves in its context can reach the next.
            self._loop.create_task(self._carry(attempt), context=Context())

    async def _carry(self, attempt: A) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[attempt] = task
        sound = False
        try:
            settlement = await attempt.run_async()
            del self._tasks[attempt]
            following = self._after(attempt, settlement)
            sound = True
        finally:
            if not sound:
                self._broken()
        if following is not None:
            self._begin((following,))

    def _cancel(self) -> None:
        for task in self._tasks.values():
            task.cancel()
