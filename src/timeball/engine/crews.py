"""Who comes for the attempts of a `Scheduler`: its threads, and an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident

from timeball.engine.aio import EventLoop
from timeball.engine.handles import Attempt
from timeball.engine.runner import Ended
from timeball.engine.section import Section
from timeball.engine.threads import Threads

_CLOSE_S = 1.0


class ThreadCrew:
    """Threads that lead, and a loop for what is asynchronous.

    Args:
        section: The lock and the agenda.
        workers: The most threads.
        broken: Called when a bug of ours has ended one of them.
    """

    def __init__(self, section: Section[Attempt], workers: int, broken: Callable[[], None]) -> None:
        self._section = section
        self._loop: EventLoop[Attempt] = EventLoop(self._after, broken)
        self._threads: Threads[Attempt] = Threads(section, workers, self._loop.start, broken)
        self.ring = self._threads.ring
        self._threads.open()

    def _after(self, done: Attempt, said: Ended) -> Attempt | None:
        return self._threads.finish(done, said)

    def current(self) -> Attempt | None:
        """Return the attempt that the caller is part of."""
        attempt = self._threads.attempt_of(get_ident())
        strands = self._loop.strands
        if attempt is not None or strands is None:
            return attempt
        try:
            return strands.attempt_of(asyncio.current_task())
        except RuntimeError:  # in no event loop
            return None

    def cancel(self, attempt: Attempt) -> None:
        """Cancel an attempt that runs on the loop."""
        self._loop.cancel(attempt)

    def close(self) -> None:
        """Let all go, once they have nothing to do; does not wait."""
        self._threads.close()

    def join(self) -> None:
        """Wait for those that carry out nothing any more."""
        self._threads.join(_CLOSE_S)
        self._loop.close(_CLOSE_S)
