"""The critical section: which attempts run, which wait their turn, and which have ended.

An attempt that was offered is in exactly one of three places: `ready`, `running` (one per
slot, so never more than there are slots) or `ended`. One short lock moves it on; to end one
attempt and to begin the next is one step. Nothing foreign runs under the lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, Protocol, TypeVar

from timeball.core.records import Settlement
from timeball.errors import UsageError


class Attempt(Protocol):
    """What a slot carries out. Neither form ever raises."""

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop, by `run_async`, or in a thread, by `run`."""
        ...

    def run(self) -> Settlement:
        """Carry it out in this thread."""
        ...

    async def run_async(self) -> Settlement:
        """Carry it out on this event loop."""
        ...


A = TypeVar("A", bound=Attempt)


class Slots(Generic[A]):
    """Room for `count` attempts.

    Args:
        count: W, the most attempts that may have begun and not ended.
        ring: Called, outside the lock, when somebody should look: a slot has gone idle, or
            those that are ready have come down to `low_water`.
    """

    def __init__(self, count: int, ring: Callable[[], None]) -> None:
        if count < 1:
            raise UsageError(f"slots is {count}: write 1 or more")
        self.count = count
        self.low_water = 0
        self.finished = 0
        """Attempts that have ended so far."""
        self._ring = ring
        self._lock = Lock()
        self._ready: deque[A] = deque()
        self._running: set[A] = set()
        self._ended: list[tuple[A, Settlement]] = []

    @property
    def waiting(self) -> int:
        """Attempts that are ready."""
        return len(self._ready)

    @property
    def running(self) -> int:
        """Attempts that have begun and not ended."""
        return len(self._running)

    @property
    def idle(self) -> bool:
        """Whether nothing is ready, runs, or has ended and not been taken."""
        with self._lock:
            return not (self._ready or self._running or self._ended)

    def offer(self, attempts: Iterable[A]) -> list[A]:
        """Let attempts line up; return those that the caller must start now."""
        begun: list[A] = []
        with self._lock:
            self._ready.extend(attempts)
            while self._ready and len(self._running) < self.count:
                begun.append(self._begin())
        return begun

    def finish(self, attempt: A, settlement: Settlement) -> A | None:
        """Note how an attempt ended and return the one that its slot now carries out, if any."""
        following: A | None = None
        with self._lock:
            if attempt not in self._running:
                return None  # it was abandoned, and this is no longer for it to say
            self._running.remove(attempt)
            self._ended.append((attempt, settlement))
            self.finished += 1
            if self._ready:
                following = self._begin()
            news = following is None or len(self._ready) == self.low_water
        if news:
            self._ring()
        return following

    def take_ended(self) -> list[tuple[A, Settlement]]:
        """Take over those that have ended, in that order."""
        with self._lock:
            ended, self._ended = self._ended, []
        return ended

    def withdraw(self) -> list[A]:
        """Take back those that have not begun."""
        with self._lock:
            ready = list(self._ready)
            self._ready.clear()
        return ready

    def begun(self) -> list[A]:
        """Return those that run, as it is at this instant."""
        with self._lock:
            return list(self._running)

    def abandon(self) -> list[A]:
        """Take those that run off the slots: whatever they still say is not heard."""
        with self._lock:
            running = list(self._running)
            self._running.clear()
        return running

    def _begin(self) -> A:
        attempt = self._ready.popleft()
        self._running.add(attempt)
        return attempt
