"""How the memory store is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import dropwhile, islice
from threading import Lock
from uuid import UUID

from timeball.core.history import EdgeRecord, JobHistory, SlotRecord, Stray
from timeball.core.records import Job
from timeball.core.states import TERMINAL, State
from timeball.errors import JobNotFound
from timeball.store.base import JobFilter
from timeball.store.memory_notes import MemoryNotes
from timeball.store.memory_rows import Lease, Row, epoch, history_of, job_of, newest_of


class MemoryReading(MemoryNotes, ABC):
    """Jobs as a reader sees them."""

    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]
    _leases: list[Lease]

    @abstractmethod
    def _edges(self, row: Row) -> tuple[EdgeRecord, ...]: ...

    @abstractmethod
    def _slots_of(self, row: Row) -> tuple[SlotRecord, ...]: ...

    @abstractmethod
    def _paused(self) -> set[str]: ...

    def get(self, uuid: UUID) -> Job:
        """See `Store.get`."""
        with self._lock:
            if uuid not in self._ids:
                raise JobNotFound(uuid)
            row = self._rows[self._ids[uuid]]
            return job_of(row, paused=row.queue in self._paused())

    def ended(self, uuids: Collection[UUID]) -> set[UUID]:
        """See `Store.ended`."""
        with self._lock:
            known = {uuid: self._rows[self._ids[uuid]] for uuid in uuids if uuid in self._ids}
            return {uuid for uuid, row in known.items() if row.state in TERMINAL}

    def cancels(self, turns: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """See `Store.cancels`."""
        with self._lock:
            return {(n, turn) for n, turn in turns if _unwanted(self._rows.get(n), turn)}

    def leases(self, worker: int, asked: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """See `Store.leases`."""
        with self._lock:
            return {each[:2] for each in self._leases if each.worker == worker}.intersection(asked)

    def jobs(self, only: JobFilter) -> list[Job]:
        """See `Store.jobs`."""
        with self._lock:
            rows = (row for row in reversed(self._rows.values()) if _shown(row, only))
            paused = self._paused()
            page = islice(rows, only.limit)
            return [job_of(row, paused=row.queue in paused) for row in page]

    def counts(self, queue: str | None = None) -> dict[State, int]:
        """See `Store.counts`."""
        with self._lock:
            rows = self._rows.values()
            return dict(Counter(row.state for row in rows if queue in {None, row.queue}))

    def histories(self, since: datetime | None = None) -> Iterator[JobHistory]:
        """See `Store.histories`."""
        with self._lock:
            found = [
                history_of(row, self._edges(row), self._slots_of(row))
                for row in self._rows.values()
            ]
        from_s = epoch(since) or 0.0
        return dropwhile(lambda history: newest_of(history) < from_s, found)

    def strays(self) -> Iterator[Stray]:
        """See `Store.strays`. Here all that there is of a job is in its row."""
        return iter(())


def _shown(row: Row, only: JobFilter) -> bool:
    return (
        only.state in {None, row.state}
        and only.queue in {None, row.queue}
        and only.kind in {None, row.spec.kind}
        and (only.before_id is None or row.id < only.before_id)
        and (only.from_id is None or row.id >= only.from_id)
    )


def _unwanted(row: Row | None, turn: int) -> bool:
    return row is not None and row.unwanted and (row.state, row.turn) == (State.RUNNING, turn)
