"""One event loop, in a thread of its own, that carries out asynchronous attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from threading import Lock, Thread
from typing import Any, Final, Generic

from timeball.engine.section import A

_LEFTOVERS_S: Final = 0.5
_CHAIN_MAX: Final = 32

_log = logging.getLogger(__name__)


def wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Let whoever awaits `future` go on; from any thread, and as often as you like."""

    def finish() -> None:
        if not future.done():
            future.set_result(None)

    if not loop.is_closed():
        loop.call_soon_threadsafe(finish)


class Strands(Generic[A]):
    """Attempts on one loop, each with a task and variables of its own.

    Nothing that one attempt does to its task or leaves in its context can reach the next. Only
    where one was never suspended and has left both as they were, the next begins in the same
    task, which is what costs the most; and so on a few times, since others wait for the loop.

    Args:
        loop: Where they run; all methods but `cancel` are called there.
        after: Told how an attempt ended; returns the one to begin here in its place.
        broken: Called when carrying out an attempt met a bug of ours.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        after: Callable[[A, Any], A | None],
        broken: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._after = after
        self._broken = broken
        self._running: dict[asyncio.Task[Any], A] = {}
        """Of the attempts that have taken their first step."""

    def begin(self, attempt: A) -> None:
        """Carry out an attempt, from the loop's next pass on."""
        self._loop.create_task(self._carry(attempt), context=attempt.variables or Context())

    def cancel(self, attempt: A | None = None) -> None:
        """Cancel, once, one attempt or all; from any thread."""
        # By two hops: those begun just before take their first step in between.
        self._loop.call_soon_threadsafe(self._loop.call_soon, self._cancel, attempt)

    def attempt_of(self, task: asyncio.Task[Any] | None) -> A | None:
        """Return the attempt that a task carries out."""
        return None if task is None else self._running.get(task)

    async def _carry(self, attempt: A | None) -> None:
        task = asyncio.current_task()
        assert task is not None
        running, after = self._running, self._after
        # Filled in the loop's next pass, which comes before any second step of this task.
        suspended: list[None] = []
        self._loop.call_soon(suspended.append, None)
        sound = False
        try:
            for _ in range(_CHAIN_MAX):
                assert attempt is not None
                running[task] = attempt
                said = await attempt.run_async()
                attempt = after(attempt, said)
                said = None  # it must not live on for as long as the next one runs
                if attempt is None or suspended or attempt.variables is not None:
                    break
                if task.cancelling() or len(copy_context()):  # not as it would find a new one
                    break
            sound = True
        finally:
            del running[task]
            if not sound:
                self._broken()
        if attempt is not None:
            self.begin(attempt)

    def _cancel(self, attempt: A | None) -> None:
        for task, running in self._running.items():
            if attempt is None or running is attempt:
                task.cancel()


class EventLoop(Generic[A]):
    """An event loop that is opened by the first attempt.

    Args:
        after: Told how an attempt ended; returns the one to begin here in its place.
        broken: Called when carrying out an attempt met a bug of ours.
    """

    def __init__(self, after: Callable[[A, Any], A | None], broken: Callable[[], None]) -> None:
        self._after = after
        self._broken = broken
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._helpers = ThreadPoolExecutor(thread_name_prefix="asyncio")
        """The loop's own, for what its coroutines have threads do; there are none before that."""

        self._closing = False
        self.strands: Strands[A] | None = None

    def start(self, attempt: A) -> None:
        """Begin an attempt, from any thread."""
        with self._lock:
            if not self._closing:  # else it has been abandoned
                loop, strands = self._open()
                loop.call_soon_threadsafe(strands.begin, attempt)

    def cancel(self, attempt: A | None = None) -> None:
        """Cancel, once, one attempt or all; what has not taken its first step is told otherwise."""
        with self._lock:
            if self.strands is not None and not self._closing:
                self.strands.cancel(attempt)

    def ask(self, back: Callable[[], None]) -> bool:
        """Have the loop call back as soon as it turns; return False where there is none."""
        with self._lock:
            if self._loop is None or self._closing:
                return False
            self._loop.call_soon_threadsafe(back)
            return True

    def close(self, timeout_s: float) -> None:
        """Cancel what is left and end the loop; a step that never returns is left behind."""
        with self._lock:
            closing, self._closing = self._closing, True
        if self._loop is not None and self._thread is not None:
            if not closing:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout_s)

    def _open(self) -> tuple[asyncio.AbstractEventLoop, Strands[A]]:
        if self._loop is None or self.strands is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(self._helpers)
            self.strands = Strands(self._loop, self._after, self._broken)
            self._thread = Thread(
                target=self._run, args=(self._loop,), name="timeball-loop", daemon=True
            )
            self._thread.start()
        return self._loop, self.strands

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
        # In a thread, for what never returns is left behind.
        ending = Thread(target=self._helpers.shutdown, daemon=True)
        ending.start()
        ending.join(_LEFTOVERS_S)
        self._helpers.shutdown(wait=False, cancel_futures=True)
        loop.close()
