"""Queues as a whole, in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock
from uuid import UUID

from timeball.core.limits import Scope
from timeball.core.queues import COUNT_MAX, Queue
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.errors import QueueFull
from timeball.store.memory_rows import Lane, QueueRow, Row, Worker


class MemoryQueues:
    """What operators say about queues."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]
    _held: dict[int, Row]
    _lanes: dict[tuple[str, int], Lane]
    _limits: dict[tuple[Scope, str], int]
    _queues: dict[str, QueueRow]
    _workers: dict[int, Worker]

    def pause_queue(self, name: str, by: str) -> bool:
        """See `Queueing.pause_queue`."""
        with self._lock:
            queue = self._queues.setdefault(name, QueueRow())
            if queue.paused_at is not None:
                return False
            queue.paused_at, queue.paused_by = self._clock(), by
            return True

    def resume_queue(self, name: str) -> bool:
        """See `Queueing.resume_queue`."""
        with self._lock:
            queue = self._queues.setdefault(name, QueueRow())
            paused = queue.paused_at is not None
            queue.paused_at = queue.paused_by = None
            return paused

    def bound_queue(self, name: str, max_depth: int | None) -> None:
        """See `Queueing.bound_queue`."""
        with self._lock:
            self._queues.setdefault(name, QueueRow()).max_depth = max_depth

    def queues(self) -> list[Queue]:
        """See `Queueing.queues`."""
        with self._lock:
            limited = {name for scope, name in self._limits if scope is Scope.QUEUE}
            known = {queue for queue, _ in self._lanes} | self._queues.keys() | limited
            return [self._queue(name) for name in sorted(known)]

    # The rest runs under the lock.

    def _paused(self) -> set[str]:
        return {name for name, queue in self._queues.items() if queue.paused_at is not None}

    def _open_queues(self) -> set[str]:
        """Return the queues into whose lanes waiting jobs may come."""
        served = {queue for w in self._workers.values() if not w.gone for queue in w.queues}
        return served - self._paused()

    def _check_depth(self, specs: Sequence[JobSpec]) -> None:
        """Refuse jobs that would take a queue beyond its limit."""
        coming = {spec.uuid: spec.queue for spec in specs if spec.uuid not in self._ids}
        for name in sorted(set(coming.values())):
            row, queue = self._queues.get(name), self._queue(name)
            depth, more = queue.pending + queue.held, list(coming.values()).count(name)
            if row and row.max_depth is not None and depth + more > row.max_depth:
                raise QueueFull(
                    name,
                    f"queue {name} is full: {min(depth, row.max_depth)} jobs wait in it, "
                    f"{more} more would pass its limit of {row.max_depth}",
                )

    def _queue(self, name: str) -> Queue:
        lanes = [lane for lane in self._lanes.values() if lane.queue == name]
        waiting = [row.entries[-1].at for lane in lanes for row in lane.pending.values()]
        rows = [row for row in self._rows.values() if row.queue == name]
        row = self._queues.get(name, QueueRow())
        return Queue(
            name=name,
            pending=min(COUNT_MAX, len(waiting)),
            held=min(COUNT_MAX, sum(job.id in self._held for job in rows)),
            running=min(COUNT_MAX, sum(job.state is State.RUNNING for job in rows)),
            oldest_s=self._clock().timestamp() - min(waiting) if waiting else None,
            paused_at=row.paused_at,
            paused_by=row.paused_by,
            at_once=self._limits.get((Scope.QUEUE, name)),
            max_depth=row.max_depth,
        )
