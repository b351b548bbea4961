"""Notices that a worker process stands still because of what one of its jobs does.

A thread of the child counts on, in the memory that it shares with its supervisor, and has its
event loop confirm the count. A job that keeps the interpreter's lock stops the count; a coroutine
that blocks stops the confirmation. The supervisor, which no job can stop, watches both.

It goes by what it sees itself, look by look, not by instants: where it was stopped too, or the
machine was asleep, that one look counts as a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from threading import Event
from typing import Final, NamedTuple

from timeball.worker.begun import BegunTable

BOUND_MIN_S: Final = 1.0
BOUND_PART: Final = 0.25
"""Of a lease: standing still for so long, and no less than `BOUND_MIN_S`, is told."""

LOOK_MAX_S: Final = 0.5
"""What one look counts at most."""

_PULSES: Final = 8
"""In the time that is told."""


class Stuck(StrEnum):
    """What does not turn."""

    INTERPRETER = "interpreter"
    EVENT_LOOP = "event_loop"


class Stall(NamedTuple):
    """What has stood still."""

    stuck: Stuck
    for_s: float
    """For how long until now; where it is over, altogether. In seconds, to a pulse or so."""

    over: bool


def bound_s(lease_s: float) -> float:
    """Return for how long a worker with such a lease may stand still before it is told."""
    return max(BOUND_MIN_S, BOUND_PART * lease_s)


def _every_s(lease_s: float) -> float:
    return bound_s(lease_s) / _PULSES


class Pulse:
    """The child's part.

    Args:
        table: Where it counts.
        lease_s: Of the worker.
        ask_loop: Has the event loop call as soon as it turns; returns False where there is none.
    """

    def __init__(
        self, table: BegunTable, lease_s: float, ask_loop: Callable[[Callable[[], None]], bool]
    ) -> None:
        self._table = table
        self._every_s = _every_s(lease_s)
        self._ask_loop = ask_loop
        self._asked = False

    def run(self, done: Event) -> None:
        """Count until `done` is set; from then on nobody watches."""
        while not done.wait(self._every_s):
            self.beat()
        self._table.pulse = 0

    def beat(self) -> None:
        """Count on, and ask the loop to confirm unless it has been asked and is silent."""
        self._table.pulse += 1
        if not self._asked:
            self._asked = True
            if not self._ask_loop(self._confirm):
                self._confirm()

    def _confirm(self) -> None:
        self._table.confirmed = self._table.pulse
        self._asked = False


class Watchdog:
    """The supervisor's part, for one child.

    Args:
        lease_s: Of its worker.
        now: This process's stopwatch.
        frozen: Tells whether the process is stopped from outside, which is no fault of a job.
    """

    def __init__(self, lease_s: float, now: float, frozen: Callable[[], bool]) -> None:
        self._bound_s = bound_s(lease_s)
        self._every_s = _every_s(lease_s)
        self._frozen = frozen
        self._looked_at = now
        self._pulse = 0
        self._still_s = 0.0
        self._told: dict[Stuck, float] = {}

    def look(self, pulse: int, confirmed: int, now: float) -> list[Stall]:
        """Return what has now stood still for too long, and what does so no more.

        Args:
            pulse: What the child has counted to; 0 where it does not count yet, or any more.
            confirmed: The last count that its event loop has confirmed.
            now: This process's stopwatch.
        """
        step_s = min(now - self._looked_at, LOOK_MAX_S)
        self._looked_at = now
        if pulse != self._pulse or not pulse:
            self._pulse, self._still_s = pulse, 0.0
        elif self._still_s < self._bound_s / 2 or not self._frozen():
            self._still_s += step_s
        # Either may be a pulse less than it seems. A count that stands still asks no loop.
        behind = pulse - confirmed - 1 if pulse else 0
        return [
            *self._judged(Stuck.INTERPRETER, self._still_s - self._every_s),
            *self._judged(Stuck.EVENT_LOOP, behind * self._every_s),
        ]

    def _judged(self, stuck: Stuck, for_s: float) -> Iterator[Stall]:
        if for_s >= self._bound_s:
            if stuck not in self._told:
                yield Stall(stuck, for_s, over=False)
            self._told[stuck] = for_s
        elif stuck in self._told:
            yield Stall(stuck, self._told.pop(stuck), over=True)
