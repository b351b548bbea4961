"""Lanes of the memory store, and which turns of them are whose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock

from timeball.core.records import Pulse, Turn
from timeball.store.base import NO_WORKER
from timeball.store.memory_rows import Lane, Lease, Row, Worker


class MemoryLanes:
    """Where what is pending lines up, and what was granted of it."""

    _rows: dict[int, Row]
    _held: dict[int, Row]
    _lanes: dict[tuple[str, int], Lane]
    _leases: list[Lease]
    _workers: dict[int, Worker]
    _lock: Lock

    def beat(self, workers: Collection[int]) -> set[int]:
        """See `Store.beat`."""
        with self._lock:
            alive = {n for n in workers if n in self._workers and not self._workers[n].gone}
            for number in alive:
                self._workers[number].beat += 1
            return alive

    def pulses(self) -> list[Pulse]:
        """See `Store.pulses`."""
        with self._lock:
            return [Pulse(w.id, w.beat, w.lease_s) for w in self._workers.values() if not w.gone]

    def _lane(self, place: tuple[str, int]) -> Lane:
        return self._lanes.setdefault(place, Lane(len(self._lanes) + 1, *place))

    def _waiting_for(self, kinds: Collection[str]) -> list[Row]:
        """Return the jobs that wait for a worker that knows one of `kinds`, by id."""
        held = (row for _, row in sorted(self._held.items()) if row.held_for == NO_WORKER)
        return [row for row in held if row.spec.kind in kinds]

    def _unknown(self, worker: int, newest: Mapping[int, int]) -> list[Turn]:
        """Return the turns of the first lease of this worker that it has not heard of."""
        theirs = (lease for lease in self._leases if lease.worker == worker)
        unheard = (lease for lease in theirs if lease.seq > newest.get(lease.lane, 0))
        return next((lease.turns for lease in unheard if lease.turns), [])

    def _open_turns(self, worker: Worker) -> list[Turn]:
        leases = [lease for lease in self._leases if lease.worker == worker.id]
        floors = {lease.lane: lease.floor for lease in leases}  # the newest lease's word counts
        return [
            turn
            for lease in leases
            if lease.seq >= floors[lease.lane]
            for turn in lease.turns
            if turn.turn not in self._rows[turn.job_id].endings
        ]
