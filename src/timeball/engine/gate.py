"""A limiter for use inside jobs: whoever asks waits for a permit, first come first served."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Final, Self

from timeball.core.limiter import limiter_of
from timeball.core.rate import Rate
from timeball.engine.aio import wake
from timeball.engine.locks import give_way

_NS_PER_S: Final = 1_000_000_000


class _Ticket:
    __slots__ = ("turn", "weight")

    def __init__(self, weight: int, turn: Callable[[], None]) -> None:
        self.weight = weight
        self.turn = turn
        """Called when it has become the first."""


class JobLimiter:
    """Lets so many pass in a time: ``with limiter:`` or ``async with limiter:`` is one of them.

    Only the first in line has a timer; the others sleep until it is their turn. Who stops waiting
    leaves the line, and nobody behind starts later for it. Nobody overtakes. Usable from any
    thread and any event loop at the same time.

    Args:
        rate: How many, and of which law.
        clock_ns: A monotonic clock in nanoseconds.
    """

    def __init__(self, rate: Rate, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.rate = rate
        self._clock_ns = clock_ns
        self._limiter = limiter_of(rate)
        self._lock = Lock()
        self._line: deque[_Ticket] = deque()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    async def __aenter__(self) -> Self:
        await self.acquire_async()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    @property
    def waiting(self) -> int:
        """How many are in line."""
        return len(self._line)

    def acquire(self, weight: int = 1, *, timeout_s: float | None = None) -> None:
        """Wait for `weight` permits at once, in this thread.

        Raises:
            UsageError: The rate never allows so many at once.
            TimeoutError: They did not come within `timeout_s` seconds; 0 does not wait at all.
        """
        bell = Lock()
        bell.acquire()
        ticket = self._join(weight, bell.release)
        if ticket is None:
            return
        until_ns = self._until_ns(timeout_s)
        try:
            while (wait_ns := self._try(ticket, until_ns)) != 0:
                bell.acquire(timeout=-1 if wait_ns is None else wait_ns / _NS_PER_S)
        except BaseException:
            self._leave(ticket)
            raise

    async def acquire_async(self, weight: int = 1, *, timeout_s: float | None = None) -> None:
        """Wait as `acquire` does, on the event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        ticket = self._join(weight, lambda: wake(loop, future))
        if ticket is None:
            return
        until_ns = self._until_ns(timeout_s)
        try:
            while (wait_ns := self._try(ticket, until_ns)) != 0:
                wait_s = None if wait_ns is None else wait_ns / _NS_PER_S
                if future.done():  # told that it is the first: only time is missing
                    await asyncio.sleep(wait_s or 0)
                else:
                    await asyncio.wait([future], timeout=wait_s)
        except BaseException:
            self._leave(ticket)
            raise

    def _until_ns(self, timeout_s: float | None) -> int | None:
        if timeout_s is None:
            return None
        return self._clock_ns() + round(max(0.0, timeout_s) * _NS_PER_S)

    def _join(self, weight: int, turn: Callable[[], None]) -> _Ticket | None:
        """Line up; None where the permits could be had at once."""
        self.rate.check_weight(weight)
        ticket = _Ticket(weight, turn)
        give_way(self._lock)
        with self._lock:
            if not self._line and not self._limiter.admit(self._clock_ns(), weight):
                return None
            self._line.append(ticket)
        return ticket

    def _try(self, ticket: _Ticket, until_ns: int | None) -> int | None:
        """Return 0 with the permits, or how long to wait before asking again; None: for the turn.

        Raises:
            TimeoutError: There is no time left to wait.
        """
        following: _Ticket | None = None
        give_way(self._lock)
        with self._lock:
            now_ns = self._clock_ns()
            wait_ns: int | None = None
            if self._line[0] is ticket:
                wait_ns = self._limiter.admit(now_ns, ticket.weight)
                if wait_ns == 0:
                    self._line.popleft()
                    following = self._line[0] if self._line else None
        if following is not None:
            following.turn()
        if wait_ns == 0 or until_ns is None:
            return wait_ns
        if now_ns >= until_ns:
            raise TimeoutError(f"no permit of {self.rate} within that time")
        left_ns = until_ns - now_ns
        return left_ns if wait_ns is None else min(wait_ns, left_ns)

    def _leave(self, ticket: _Ticket) -> None:
        give_way(self._lock)
        with self._lock:
            was_first = bool(self._line) and self._line[0] is ticket
            if ticket in self._line:
                self._line.remove(ticket)
            following = self._line[0] if was_first and self._line else None
        if following is not None:
            following.turn()
