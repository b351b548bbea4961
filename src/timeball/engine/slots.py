"""The agenda of the durable worker: first come, first served, in so many slots.

An attempt that was offered is in exactly one of four places: `later`, `ready`, `running` (one per
slot, so never more than there are slots) or `ended`. Who decides more than that is the store.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from timeball.core.records import Settlement
from timeball.engine.handles import NEVER_NS
from timeball.engine.section import Attempt
from timeball.errors import UsageError


class Timed(Attempt, Protocol):
    """An attempt that may have to wait."""

    not_before_ns: int
    """When it may begin, by the monotonic clock; 0: now."""


T = TypeVar("T", bound=Timed)


class Slots(Generic[T]):
    """Room for `count` attempts. Called under the section's lock, but for reading numbers.

    Args:
        count: W, the most attempts that may have begun and not ended.
        ring: Called, outside the lock, when somebody should look: a slot has gone idle, or
            those that are ready have come down to `low_water`.
    """

    def __init__(self, count: int, ring: Callable[[], None]) -> None:
        if count < 1:
            raise UsageError(f"slots is {count}: write 1 or more")
        self.count = count
        self.inbox: deque[T] = deque()
        self.wake_ns = NEVER_NS
        """When the first of `later` may begin."""
        self.outbox: list[Callable[[], Any]] = []
        self.low_water = 0
        self.finished = 0
        """Attempts that have ended so far."""
        self.closed = False
        """Whether no more are to begin."""
        self.later: list[tuple[int, int, T]] = []
        """Those that may not begin yet: a heap by their instants."""
        self.ready: deque[T] = deque()
        self.ended: list[tuple[T, Settlement]] = []
        self.at_work: set[T] = set()
        self._ring = ring
        self._places = itertools.count()
        self._loop_only = False

    @property
    def waiting(self) -> int:
        """Attempts that have not begun."""
        return len(self.later) + len(self.ready) + len(self.inbox)

    @property
    def running(self) -> int:
        """Attempts that have begun and not ended."""
        return len(self.at_work)

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs, or has ended and not been taken."""
        return not (self.inbox or self.later or self.ready or self.at_work or self.ended)

    @property
    def more(self) -> bool:
        """Whether somebody else could begin an attempt now."""
        return bool(self.ready) and len(self.at_work) < self.count and not self.closed

    def round(self, done: T | None, said: Settlement, now_ns: int) -> T | None:
        """Note how an attempt ended, and return the one that begins now, if any."""
        if done is not None and done in self.at_work:  # else it was abandoned, and is not heard
            self.at_work.remove(done)
            self.ended.append((done, said))
            self.finished += 1
        if self.inbox or self.wake_ns <= now_ns:
            self.drain(now_ns)
        before = len(self.ready)
        following = self._begin()
        if (done is not None and following is None) or before > self.low_water >= len(self.ready):
            self.outbox.append(self._ring)
        return following

    def round_on_loop(self, done: T | None, said: Settlement, now_ns: int) -> T | None:
        """Do the same, but return an attempt only if it runs on the event loop."""
        self._loop_only = True
        attempt = self.round(done, said, now_ns)
        self._loop_only = False
        return attempt

    def drain(self, now_ns: int) -> None:
        """Take in all that was offered, and what may begin by now."""
        while self.inbox:
            attempt = self.inbox.popleft()
            if attempt.not_before_ns > now_ns:
                heappush(self.later, (attempt.not_before_ns, next(self._places), attempt))
            else:
                self.ready.append(attempt)
        while self.later and self.later[0][0] <= now_ns:
            self.ready.append(heappop(self.later)[2])
        self.wake_ns = self.later[0][0] if self.later else NEVER_NS

    def withdraw(self) -> list[T]:
        """Take back those that have not begun."""
        back = [*self.ready, *(attempt for _, _, attempt in sorted(self.later))]
        self.ready.clear()
        self.later.clear()
        self.wake_ns = NEVER_NS
        return back

    def _begin(self) -> T | None:
        if not self.more or (self._loop_only and not self.ready[0].is_async):
            return None
        attempt = self.ready.popleft()
        self.at_work.add(attempt)
        return attempt
