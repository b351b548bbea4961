"""Gives up workers that are dead: those seen silent, and those known to be.

Silence is measured on this process's own stopwatch, never by comparing clocks: a
clock that steps, or a store that was away, must not look like the death of everyone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from threading import Event, Thread
from typing import NamedTuple

from timeball.core.records import Expired, Pulse
from timeball.errors import SchemaMismatch, StoreUnavailable
from timeball.store.base import Store

_REST_MAX_S = 1.0
_RETRY_S = 0.5
_READS_PER_LEASE = 6
_BLINKS_PER_LEASE = 2

_log = logging.getLogger(__name__)

Told = Callable[[int, Expired], None]
"""Told of a worker that was given up here, and of what became of its turns."""


def _nobody(worker: int, expired: Expired) -> None:
    pass


class _Sight(NamedTuple):
    """A beat that has not moved while it was watched."""

    beat: int
    since: float


class Sweeper:
    """Expires workers whose beat was seen unchanged for the whole of their lease.

    Seen means: read again and again, with no failed read and no pause longer than half
    the lease between two reads. After either, every worker has a full lease again, for
    what kept this process from reading may have kept the workers from beating.
    """

    def __init__(
        self,
        store: Store,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        told: Told = _nobody,
    ) -> None:
        self._store = store
        self._told = told
        self._monotonic = monotonic
        self._seen: dict[int, _Sight] = {}
        self._read_at = 0.0
        self._rest_s = 0.0

    def run(self, stop: Event) -> None:
        """Sweep until `stop` is set, whatever becomes of the store meanwhile."""
        while not stop.wait(self._rest_s):
            try:
                self.sweep()
            except StoreUnavailable as error:
                _log.warning("dead workers wait for the store: %s", error)

    def sweep(self) -> dict[int, Expired]:
        """Read the pulses once; return the workers given up and what became of their turns.

        Raises:
            StoreUnavailable: The watch over every worker begins anew.
        """
        try:
            return self._sweep()
        except StoreUnavailable:
            self._seen.clear()
            raise

    def _sweep(self) -> dict[int, Expired]:
        # What was read was true somewhere between these two: both bounds err towards life.
        asked_at = self._monotonic()
        pulses = self._store.pulses()
        read_at = self._monotonic()
        pause_s, self._read_at = read_at - self._read_at, read_at
        dead = [pulse for pulse in pulses if self._silent(pulse, asked_at, pause_s)]
        known = {pulse.worker for pulse in pulses}
        self._seen = {worker: sight for worker, sight in self._seen.items() if worker in known}
        leases = [pulse.lease_s for pulse in pulses]
        self._rest_s = min([_REST_MAX_S, *(lease_s / _READS_PER_LEASE for lease_s in leases)])
        return self._expire(dead)

    def _silent(self, pulse: Pulse, asked_at: float, pause_s: float) -> bool:
        """Return whether a worker has been seen silent for its whole lease; note what is seen."""
        sight = self._seen.get(pulse.worker)
        blinked = pause_s > pulse.lease_s / _BLINKS_PER_LEASE
        if sight is None or sight.beat != pulse.beat or blinked:
            self._seen[pulse.worker] = _Sight(pulse.beat, self._read_at)
            return False
        return not asked_at - sight.since < pulse.lease_s

    def _expire(self, dead: list[Pulse]) -> dict[int, Expired]:
        gone: dict[int, Expired] = {}
        for pulse in dead:
            del self._seen[pulse.worker]
            # It may have beaten since it was read, or another sweeper was quicker: then None.
            expired = self._store.expire(pulse.worker, beat=pulse.beat, begun=None)
            if expired is not None:
                _log.warning("worker %d fell silent and is given up: %s", pulse.worker, expired)
                gone[pulse.worker] = expired
                self._told(pulse.worker, expired)
        return gone


class Deaths:
    """Gives up workers whose death is certain: at once, and as often as the store needs it."""

    def __init__(self, store: Store, *, retry_s: float = _RETRY_S, told: Told = _nobody) -> None:
        self._store = store
        self._told = told
        self._retry_s = retry_s
        self._stopped = Event()
        self._open: dict[int, Thread] = {}

    def report(
        self, worker: int, begun: Collection[tuple[int, int]], *, after_s: float = 0.0
    ) -> None:
        """Give up a worker whose process has been waited for; returns before that is done.

        Args:
            worker: Whose death is certain.
            begun: The (job, turn) pairs whose attempts had begun; see `Store.expire`.
            after_s: Wait so long, for what it has started apart to be gone too.
        """
        name = f"timeball-death-{worker}"
        thread = Thread(target=self._give_up, args=(worker, begun, after_s), name=name, daemon=True)
        self._open[worker] = thread
        thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all is given up and return True; False if the time was not enough."""
        until = time.monotonic() + timeout_s
        for thread in list(self._open.values()):
            thread.join(max(0.0, until - time.monotonic()))
        return not self._open

    def stop(self) -> None:
        """Leave the rest to the leases."""
        self._stopped.set()

    def _give_up(self, worker: int, begun: Collection[tuple[int, int]], after_s: float) -> None:
        self._stopped.wait(after_s)
        while not self._stopped.is_set():
            try:
                expired = self._store.expire(worker, beat=None, begun=begun)
            except StoreUnavailable as error:
                _log.warning("dead worker %d waits for the store: %s", worker, error)
                self._stopped.wait(self._retry_s)
                continue
            except SchemaMismatch as error:
                _log.warning("dead worker %d is left to its lease: %s", worker, error)
                return
            if expired is not None:
                self._told(worker, expired)
                if any(expired):
                    _log.warning("worker %d died: %s", worker, expired)
            del self._open[worker]
            return
