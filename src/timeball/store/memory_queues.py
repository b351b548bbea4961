"""Queues as a whole, in the memory store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock

from timeball.core.limits import Scope
from timeball.core.queues import COUNT_MAX, Queue
from timeball.core.states import State
from timeball.store.memory_rows import Lane, QueueRow, Row


class MemoryQueues:
    """What operators say about queues."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _held: dict[int, Row]
    _lanes: dict[tuple[str, int], Lane]
    _limits: dict[tuple[Scope, str], int]
    _queues: dict[str, QueueRow]

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

    def queues(self) -> list[Queue]:
        """See `Queueing.queues`."""
        with self._lock:
            limited = {name for scope, name in self._limits if scope is Scope.QUEUE}
            known = {queue for queue, _ in self._lanes} | self._queues.keys() | limited
            return [self._queue(name) for name in sorted(known)]

    # The rest runs under the lock.

    def _paused(self) -> set[str]:
        return {name for name, queue in self._queues.items() if queue.paused_at is not None}

    def _queue(self, name: str) -> Queue:
        lanes = [lane for lane in self._lanes.values() if lane.queue == name]
        waiting = [row.entries[-1].at for lane in lanes for row in lane.pending.values()]
        rows = [row for row in self._rows.values() if row.spec.queue == name]
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
