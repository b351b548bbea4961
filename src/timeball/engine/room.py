"""Room in a bounded queue: submitters wait for it in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from timeball.engine.aio import wake


class Ticket:
    """One submitter's place in the line. Used once: whoever takes it first has it."""

    __slots__ = ("_call", "_once", "granted")

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._once = [None]
        self.granted = False

    def grant(self) -> bool:
        """Give it room; return whether it was still waiting for some."""
        if not self.leave():
            return False
        self.granted = True
        self._call()
        return True

    def leave(self) -> bool:
        """Stop waiting; return False where it was granted before."""
        try:
            self._once.pop()  # atomic: of two that try, one succeeds
        except IndexError:
            return False
        return True

    def turn_away(self) -> None:
        """Wake the submitter without giving it room."""
        if self.leave():
            self._call()


class Room:
    """Room for `size` jobs. Takes no lock, so that it can be given and asked for anywhere."""

    def __init__(self, size: int) -> None:
        self._free = [None] * size
        self._owed: deque[None] = deque()
        self._line: deque[Ticket] = deque()
        self._closed = False

    def take(self) -> bool:
        """Take room for one job if there is some and nobody waits for it."""
        if self._line:
            return False
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def take_more(self, count: int) -> None:
        """Take room for so many jobs without waiting; what is not there is owed."""
        for _ in range(count):
            if not self.take():
                self._owed.append(None)

    def wait(self, ticket: Ticket) -> None:
        """Line up; the ticket is granted, perhaps at once, when it is its turn."""
        self._line.append(ticket)
        self._match()

    def enter(self) -> bool:
        """Wait for room for one job; return False where the room was closed meanwhile."""
        if self.take():
            return True
        gate = Lock()
        gate.acquire()
        ticket = self._queue_up(gate.release)
        try:
            gate.acquire()
        except BaseException:
            self._give_back(ticket)
            raise
        return ticket.granted

    async def enter_async(self) -> bool:
        """Wait as `enter` does, on the event loop."""
        if self.take():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        ticket = self._queue_up(lambda: wake(loop, future))
        try:
            await future
        except BaseException:
            self._give_back(ticket)
            raise
        return ticket.granted

    def _queue_up(self, call: Callable[[], None]) -> Ticket:
        ticket = Ticket(call)
        self.wait(ticket)
        if self._closed:
            ticket.turn_away()
        return ticket

    def _give_back(self, ticket: Ticket) -> None:
        if not ticket.leave() and ticket.granted:
            self.give()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Give back the room that was taken for a job where that is refused."""
        try:
            yield
        except BaseException:
            self.give()
            raise

    def give(self) -> None:
        """Give back the room of one job."""
        try:
            self._owed.pop()
        except IndexError:
            self._free.append(None)
            self._match()

    def close(self) -> None:
        """Turn away all who wait, and who come."""
        self._closed = True
        with suppress(IndexError):  # not "while there is one": room that is given takes them too
            while True:
                self._line.popleft().turn_away()

    def _match(self) -> None:
        while self._line and self._free:
            try:
                self._free.pop()
            except IndexError:
                return
            try:
                granted = self._line.popleft().grant()
            except IndexError:
                granted = False
            if not granted:
                self._free.append(None)
