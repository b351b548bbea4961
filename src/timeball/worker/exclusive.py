"""Stops exclusive attempts before their worker's lease can be seen to have run out.

A sweeper gives a worker up once it has seen the same beat for a whole lease; it cannot have seen
that beat before it was written. So, from the instant at which the last beat that was answered
was asked for, on this machine's own clock: after half a lease an exclusive attempt is told to
end, a quarter of a lease later it is killed, with its whole process tree, and should this process
itself be unable to do that, its supervisor kills it at four fifths.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Final

from timeball.action.context import StopSign
from timeball.worker.begun import BegunTable

STOP_AT: Final = 0.5
GRACE: Final = 0.25
KILL_AT: Final = 0.8
"""Parts of a lease."""

_LOOKS_PER_LEASE: Final = 20
_NS: Final = 1_000_000_000

_log = logging.getLogger(__name__)


class Guard:
    """Knows the exclusive attempts that run, and stops them in time.

    Args:
        table: Where the supervisor notes the beats.
        lease_s: The lease, in seconds.
        monotonic_ns: The clock of both.
    """

    def __init__(
        self,
        table: BegunTable,
        lease_s: float,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._table = table
        self._lease_s = lease_s
        self._monotonic_ns = monotonic_ns
        self._lock = Lock()
        self._running: set[StopSign] = set()
        self._worker: int | None = None

    def registered(self, worker: int, asked_ns: int) -> None:
        """Note that the worker was registered at that instant, or a moment later."""
        with self._lock:
            self._worker = worker
            self._table.hear(asked_ns)

    def admit(self, stop: StopSign, worker: int) -> bool:
        """Return whether an exclusive attempt may begin; then `leave` must follow its end.

        Args:
            stop: Its sign.
            worker: Under which registration its turn was granted: that must be the present one.
        """
        with self._lock:
            if worker != self._worker or self._is_late():
                return False
            self._running.add(stop)
            self._table.exclusive = len(self._running)
            return True

    def leave(self, stop: StopSign) -> None:
        """Note that nothing is left of an attempt."""
        with self._lock:
            self._running.discard(stop)
            self._table.exclusive = len(self._running)

    def run(self, done: Event) -> None:
        """Look after the attempts until `done` is set."""
        while not done.wait(self._lease_s / _LOOKS_PER_LEASE):
            self.look()

    def look(self) -> None:
        """Stop the attempts if no beat was answered for half a lease."""
        if self._running and self._is_late():
            self.stop()

    def expired(self) -> None:
        """Stop them, and admit none before the worker has registered anew."""
        with self._lock:
            self._worker = None
        self.stop()

    def stop(self) -> None:
        """Stop them: their turns may be somebody else's soon, or are already."""
        with self._lock:
            running = [stop for stop in self._running if not stop.raised]
        if running:
            _log.warning("cut off: %d exclusive attempts are stopped", len(running))
        for stop in running:
            stop.raise_()

    def _is_late(self) -> bool:
        return overdue(self._table, self._lease_s, STOP_AT, self._monotonic_ns())


def overdue(table: BegunTable, lease_s: float, part: float, now_ns: int) -> bool:
    """Return whether that part of a lease has passed since the last beat that was answered."""
    return now_ns - table.heard_ns >= part * lease_s * _NS
