"""Carries out attempts, `slots` at a time, in threads and on one event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic

from timeball.core.records import Settlement
from timeball.engine.aio import EventLoop
from timeball.engine.slots import A, Slots
from timeball.engine.threads import Threads

_CLOSE_S: Final = 1.0


class Kernel(Generic[A]):
    """Slots with the two ways to fill them.

    The one that ends an attempt carries out the next in its place: a thread another one for
    threads, the event loop another one for itself, without waking anybody.

    Args:
        slots: The most attempts that may have begun and not ended.
        ring: See `Slots`.
    """

    def __init__(self, slots: int, ring: Callable[[], None]) -> None:
        self.slots: Slots[A] = Slots(slots, ring)
        self.broken = False
        """Whether a bug of ours has cost a slot: then the process should end, and be healed."""
        self._ring = ring
        self._threads: Threads[A] = Threads(slots, self._after, self._break)
        self._loop: EventLoop[A] = EventLoop(self._after, self._break)

    def offer(self, attempts: Iterable[A]) -> None:
        """Let attempts line up and begin as soon as there are slots."""
        self._start(self.slots.offer(attempts))

    def cancel(self) -> None:
        """Cancel the asynchronous attempts that run; those in threads cannot be stopped."""
        self._loop.cancel()

    def close(self) -> None:
        """End all threads, but for those whose attempt does not return."""
        self._threads.close(_CLOSE_S)
        self._loop.close(_CLOSE_S)

    def _start(self, begun: list[A]) -> None:
        for attempt in begun:
            if not attempt.is_async:
                self._threads.start(attempt)
        if on_loop := [attempt for attempt in begun if attempt.is_async]:
            self._loop.start(on_loop)

    def _after(self, attempt: A, settlement: Settlement) -> A | None:
        following = self.slots.finish(attempt, settlement)
        if following is None or following.is_async == attempt.is_async:
            return following
        self._start([following])
        return None

    def _break(self) -> None:
        self.broken = True
        self._ring()
