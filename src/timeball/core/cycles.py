"""Jobs that wait for each other, and so for ever: I15 of the contract, for edges of any sort.

Edges to earlier jobs close no cycle. Those that were added later, or spawned, and those of batches
may lead either way: whether they do is seen only once all of them are known. What is kept for that
are two numbers for each edge of a job that waits now, and time grows with their number.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from timeball.core.history import JobHistory
from timeball.core.states import State

WAY_SHOWN = 5
"""So many jobs of a way are kept."""


class Cycle(NamedTuple):
    """Jobs each of which waits for the next one, and the last one for the first."""

    jobs: tuple[int, ...]
    """The first few of them."""

    length: int

    def __str__(self) -> str:
        ways = [f"job {job}" for job in self.jobs[1:]]
        more = self.length - len(self.jobs)
        last = [f"{more} more"] * bool(more) + [f"job {self.jobs[0]}"]
        return f"waits for {', which waits for '.join([*ways, *last])}: a cycle"


class Waits:
    """Who waits for whom, of the jobs of a record that is read once."""

    def __init__(self) -> None:
        self._children, self._parents = array("q"), array("q")
        self._upward = False

    def take(self, history: JobHistory) -> None:
        """Note what a job waits for now; edges of one job must come together."""
        held = history.held
        if held is None or held.state is not State.WAITING:
            return
        for edge in history.edges:
            if edge.decided_at is None:
                self._children.append(history.id)
                self._parents.append(edge.parent)
                self._upward = self._upward or edge.parent >= history.id

    def cycles(self) -> Iterator[Cycle]:
        """Yield cycles: none iff there is none; each edge that closes one has its own."""
        if not self._upward:
            return
        first: dict[int, int] = {}
        for at, child in enumerate(self._children):
            first.setdefault(child, at)
        done: set[int] = set()
        for job in first:
            if job not in done:
                yield from self._from(job, first, done)

    def _from(self, job: int, first: dict[int, int], done: set[int]) -> Iterator[Cycle]:
        """Go all ways from a job that nobody has been to; every job is left once for all."""
        way, places, nexts = [job], {job: 0}, [first[job]]
        while way:
            at = nexts[-1]
            nexts[-1] += 1
            if at == len(self._children) or self._children[at] != way[-1]:
                done.add(way[-1])
                del places[way.pop()]
                nexts.pop()
                continue
            parent = self._parents[at]
            if parent in places:
                place = places[parent]
                yield Cycle(tuple(way[place : place + WAY_SHOWN]), len(way) - place)
            elif parent in first and parent not in done:
                places[parent] = len(way)
                way.append(parent)
                nexts.append(first[parent])
