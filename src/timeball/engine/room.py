"""Room in a bounded queue: submitters wait for it in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


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
        self._line: deque[Ticket] = deque()

    def take(self) -> bool:
        """Take room for one job if there is some and nobody waits for it."""
        if self._line:
            return False
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def wait(self, ticket: Ticket) -> None:
        """Line up; the ticket is granted, perhaps at once, when it is its turn."""
        self._line.append(ticket)
        self._match()

    def give(self) -> None:
        """Give back the room of one job."""
        self._free.append(None)
        self._match()

    def close(self) -> None:
        """Turn away all who wait."""
        while self._line:
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
