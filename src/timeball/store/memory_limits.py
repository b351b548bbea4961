"""Limits on what is under way at once, in the memory store: slots are members of sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock

from timeball.core.history import SlotRecord
from timeball.core.limits import AT_ONCE_DEFAULT, Holding, Limit, Scope, fitting
from timeball.store.base import KEY_BUSY
from timeball.store.memory_rates import MemoryRates
from timeball.store.memory_rows import Lane, QueueRow, Row, Worker, epoch


class MemoryLimits(MemoryRates):
    """Who counts against which limit."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _held: dict[int, Row]
    _lanes: dict[tuple[str, int], Lane]
    _workers: dict[int, Worker]

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[str, QueueRow] = {}
        self._limits: dict[tuple[Scope, str], int] = {}
        self._slots: defaultdict[tuple[Scope, str], set[int]] = defaultdict(set)

    def limit(self, scope: Scope, name: str, at_once: int | None) -> None:
        """See `Store.limit`."""
        with self._lock:
            if at_once is None:
                self._limits.pop((scope, name), None)
            else:
                self._limits[scope, name] = at_once

    def limits(self) -> list[Limit]:
        """See `Store.limits`."""
        with self._lock:
            return [
                Limit(
                    *each,
                    self._limits.get(each),
                    self._used(*each) if each in self._limits else 0,
                    self._rates[each][0].rate if each in self._rates else None,
                )
                for each in sorted({*self._limits, *self._rates})
            ]

    def holdings(self, since: datetime | None = None) -> Iterator[Holding]:
        """See `Store.holdings`."""
        with self._lock:
            found = [
                Holding(scope, name, at, _until(row, turn), row.id, at_once)
                for row in self._rows.values()
                for scope, name, at, turn, at_once in row.holdings
            ]
        from_s = epoch(since) or 0.0
        found = [each for each in found if each.until is None or each.until >= from_s]
        return iter(sorted(found, key=lambda holding: holding[:3]))

    # The rest runs under the lock.

    def _slots_of(self, row: Row) -> tuple[SlotRecord, ...]:
        slots = self._slots.items()
        return tuple(SlotRecord(*slot) for slot, jobs in slots if row.id in jobs)

    def _used(self, scope: Scope, name: str) -> int:
        slots = self._slots.items()
        return sum(
            len(jobs)
            for (kind, held), jobs in slots
            if kind is scope and (held == name or (scope is Scope.KEY and fitting([name], held)))
        )

    def _at_once(self, scope: Scope, name: str) -> int | None:
        """Return the limit that holds for a queue or a key; None: there is none."""
        if scope is Scope.QUEUE:
            return self._limits.get((scope, name))
        best = fitting((limit for kind, limit in self._limits if kind is scope), name)
        return AT_ONCE_DEFAULT if best is None else self._limits[scope, best]

    def _room(self, scope: Scope, name: str, most: int) -> int:
        """Return how many more may come, `most` at most."""
        at_once = self._at_once(scope, name)
        return most if at_once is None else min(most, at_once - len(self._slots[scope, name]))

    def _lane_for(self, worker: Worker, aging_s: float, permits: Mapping[str, int]) -> Lane | None:
        """Return the lane whose head a worker is to be granted next; of equal ones the older."""
        lanes = [
            lane
            for lane in self._lanes.values()
            if lane.pending
            and lane.queue in worker.queues
            and lane.queue not in self._paused()
            and self._room(Scope.QUEUE, lane.queue, 1) > 0
            and permits.get(lane.queue, 1) > 0
        ]
        return min(lanes, key=lambda lane: (lane.head_s(aging_s), -lane.priority), default=None)

    def _take(self, scope: Scope, name: str, row: Row) -> None:
        at_once = self._at_once(scope, name)
        if at_once is not None:
            self._slots[scope, name].add(row.id)
            at = self._clock().timestamp()
            row.holdings.append((scope, name, at, row.turn, at_once))

    def _free(self, row: Row) -> set[str]:
        """Take back the slots of a job whose turn has ended; return the key that has room."""
        held = [slot for slot, jobs in self._slots.items() if row.id in jobs]
        for slot in held:
            self._slots[slot].remove(row.id)
        return {name for scope, name in held if scope is Scope.KEY}

    def _waiting_keys(self) -> set[str]:
        rows = (row for row in self._held.values() if row.held_for == KEY_BUSY)
        return {row.spec.key for row in rows if row.spec.key is not None}

    def _let_in(self, keys: Iterable[str], most: int) -> list[Row]:
        """Take slots for jobs that wait for some keys, and return those that have one now."""
        served = self._open_queues()
        chosen: list[Row] = []
        for key in sorted(set(keys)):
            room = self._room(Scope.KEY, key, most - len(chosen))
            room = self._expected(f"key:{key}", room)
            for row in self._next_of(key, served)[: max(0, room)]:
                self._take(Scope.KEY, key, row)
                row.lined_at = (
                    row.held_at if self._rates else None
                )  # its place, should it come back
                chosen.append(row)
        return chosen

    def _next_of(self, key: str, served: Collection[str]) -> list[Row]:
        """Return who waits for a key: first the highest class, then who has waited longest."""
        held = (row for row in self._held.values() if row.held_for == KEY_BUSY)
        rows = [row for row in held if row.spec.key == key and row.queue in served]
        return sorted(rows, key=lambda row: (-row.place[1], row.held_at, row.id))


def _until(row: Row, turn: int) -> float | None:
    end = row.endings.get(turn)
    return None if end is None else end.at.timestamp()
