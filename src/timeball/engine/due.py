"""The jobs that are not to start before an instant, the earliest first."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Final

from timeball.core.states import State
from timeball.engine.handles import NEVER_NS, Work

_SCHEDULED: Final = State.SCHEDULED


class Due:
    """A heap of jobs by their instants. Some may have left since, which shows when it is time."""

    __slots__ = ("_heap", "_numbers", "next_ns")

    def __init__(self) -> None:
        self.next_ns = NEVER_NS
        """The earliest instant."""
        self._heap: list[tuple[int, int, Work, int]] = []
        self._numbers = count()

    def add(self, due_ns: int, work: Work) -> None:
        """Have a job come up at `due_ns`; one that is taken in again comes up for that turn."""
        heappush(self._heap, (due_ns, next(self._numbers), work, work.at_turn))
        self.next_ns = self._heap[0][0]

    def take(self, now_ns: int) -> list[Work]:
        """Take out those whose instant has come, in the order of their instants."""
        heap, found = self._heap, []
        while heap and heap[0][0] <= now_ns:
            _, _, work, turn = heappop(heap)
            if work.state is _SCHEDULED and work.at_turn == turn:
                found.append(work)
        self.next_ns = heap[0][0] if heap else NEVER_NS
        return found
