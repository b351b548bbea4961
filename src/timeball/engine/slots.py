"""The agenda of the durable worker: first come, first served, in so many slots.

An attempt that was offered is in exactly one of three places: `ready`, `running` (one per slot,
so never more than there are slots) or `ended`. Who decides more than that is the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from timeball.core.records import Settlement
from timeball.engine.handles import NEVER_NS
from timeball.engine.section import A
from timeball.errors import UsageError


class Slots(Generic[A]):
    """Room for `count` attempts. Called under the section's lock, but for reading numbers.

    Args:
        count: W, the most attempts that may have begun and not ended.
        ring: Called, outside the lock, when somebody should look: a slot has gone idle, or
            those that are ready have come down to `low_water`.
    """

    wake_ns = NEVER_NS

    def __init__(self, count: int, ring: Callable[[], None]) -> None:
        if count < 1:
            raise UsageError(f"slots is {count}: write 1 or more")
        self.count = count
        self.inbox: deque[A] = deque()
        self.outbox: list[Callable[[], Any]] = []
        self.low_water = 0
        self.finished = 0
        """Attempts that have ended so far."""
        self.closed = False
        """Whether no more are to begin."""
        self.ready: deque[A] = deque()
        self.ended: list[tuple[A, Settlement]] = []
        self.at_work: set[A] = set()
        self._ring = ring
        self._loop_only = False

    @property
    def waiting(self) -> int:
        """Attempts that have not begun."""
        return len(self.ready) + len(self.inbox)

    @property
    def running(self) -> int:
        """Attempts that have begun and not ended."""
        return len(self.at_work)

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs, or has ended and not been taken."""
        return not (self.inbox or self.ready or self.at_work or self.ended)

    @property
    def more(self) -> bool:
        """Whether somebody else could begin an attempt now."""
        return bool(self.ready) and len(self.at_work) < self.count and not self.closed

    def round(self, done: A | None, said: Settlement, now_ns: int) -> A | None:
        """Note how an attempt ended, and return the one that begins now, if any."""
        if done is not None and done in self.at_work:  # else it was abandoned, and is not heard
            self.at_work.remove(done)
            self.ended.append((done, said))
            self.finished += 1
        if self.inbox:
            self.drain(now_ns)
        before = len(self.ready)
        following = self._begin()
        if (done is not None and following is None) or before > self.low_water >= len(self.ready):
            self.outbox.append(self._ring)
        return following

    def round_on_loop(self, done: A | None, said: Settlement, now_ns: int) -> A | None:
        """Do the same, but return an attempt only if it runs on the event loop."""
        self._loop_only = True
        attempt = self.round(done, said, now_ns)
        self._loop_only = False
        return attempt

    def drain(self, now_ns: int) -> None:
        """Take in all that was offered."""
        while self.inbox:
            self.ready.append(self.inbox.popleft())

    def _begin(self) -> A | None:
        if not self.more or (self._loop_only and not self.ready[0].is_async):
            return None
        attempt = self.ready.popleft()
        self.at_work.add(attempt)
        return attempt
