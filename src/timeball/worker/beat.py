"""Beats for the workers of a supervisor, so that nobody takes them for dead.

It has a thread of the supervisor process and a store of its own, for user code may hold
the interpreter of a child for longer than a lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from threading import Event

from timeball.errors import StoreUnavailable
from timeball.store.base import Store

_BEATS_PER_LEASE = 6
_RETRIES_PER_BEAT = 5

_log = logging.getLogger(__name__)


def _nobody(alive: set[int], asked_ns: int) -> None:
    pass


class Beat:
    """Gives a sign of life for each worker, six times per lease."""

    def __init__(
        self,
        store: Store,
        workers: Callable[[], Collection[int]],
        lost: Callable[[set[int]], None],
        *,
        lease_s: float,
        answered: Callable[[set[int], int], None] = _nobody,
    ) -> None:
        """Make a beat that has not begun.

        Args:
            store: Used by nobody else, so that no long call stands before a beat.
            workers: Gives the ids to beat for, at each beat.
            lost: Told the ids that were given up. Called from the thread that beats.
            lease_s: The lease of the workers, in seconds.
            answered: Told which have a beat, and when it was asked for, in nanoseconds of the
                monotonic clock.
        """
        self._store = store
        self._workers = workers
        self._lost = lost
        self._answered = answered
        self._every_s = lease_s / _BEATS_PER_LEASE

    def run(self, stop: Event) -> None:
        """Beat until `stop` is set; where the store cannot be reached, try again soon."""
        rest_s = 0.0
        while not stop.wait(rest_s):
            try:
                self.beat()
                rest_s = self._every_s
            except StoreUnavailable as error:
                _log.warning("no beat, for the store is away: %s", error)
                rest_s = self._every_s / _RETRIES_PER_BEAT

    def beat(self) -> None:
        """Beat once.

        Raises:
            StoreUnavailable: Perhaps it was written, perhaps not.
        """
        workers = set(self._workers())
        if not workers:
            return
        asked_ns = time.monotonic_ns()
        alive = self._store.beat(workers)
        self._answered(alive, asked_ns)
        given_up = workers - alive
        if given_up:
            self._lost(given_up)
