"""What operators say about queues, in PostgreSQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from timeball.core.queues import COUNT_BUDGET, COUNT_MAX, Queue
from timeball.core.upkeep import MoveAnswer, SnoozeAnswer
from timeball.store.postgres.connections import Run


class PostgresQueues(ABC):
    """Queues; see `timeball.store.queueing.Queueing` for what each verb promises."""

    _run: Run
    _lanes: set[tuple[str, int]]

    @abstractmethod
    def _at_home(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run a statement, after moving in where the ledger comes from another server."""

    @abstractmethod
    def wake(self, queues: Collection[str]) -> None:
        """Wake the workers that listen."""

    @abstractmethod
    def ensure_lanes(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make lanes where they are missing."""

    def pause_queue(self, name: str, by: str) -> bool:
        """See `Queueing.pause_queue`.

        Two transactions: a claim that begins after the first sees it, whatever the lane; one
        that asked before holds its lane until it ends, and the second waits for that.
        """
        paused = bool(self._run("pause_queue", queue=name, by=by))
        self._run("pass_lanes", queue=name)
        return paused

    def resume_queue(self, name: str) -> bool:
        """See `Queueing.resume_queue`. Workers that listen are woken after the commit."""
        resumed = bool(self._run("resume_queue", queue=name))
        self.wake([name])
        return resumed

    def bound_queue(self, name: str, max_depth: int | None) -> None:
        """See `Queueing.bound_queue`."""
        self._run("bound_queue", queue=name, max_depth=max_depth)

    def move(self, uuid: UUID, *, queue: str | None, priority: int | None) -> MoveAnswer:
        """See `Queueing.move`. Workers that listen are woken after the commit."""
        while True:
            ((answer, *place),) = self._at_home("move", uuid=uuid, queue=queue, priority=priority)
            if answer != "no_lane":
                break
            self._lanes.discard((place[0], place[1]))
            self.ensure_lanes([(place[0], place[1])])
        if answer == MoveAnswer.MOVED:
            self.wake([place[0]])
        return MoveAnswer(answer)

    def snooze(self, uuid: UUID, until: datetime) -> SnoozeAnswer:
        """See `Queueing.snooze`."""
        return SnoozeAnswer(self._at_home("snooze", uuid=uuid, until=until)[0][0])

    def queues(self) -> list[Queue]:
        """See `Queueing.queues`."""
        return [Queue(*row) for row in self._run("queues", most=COUNT_MAX, budget=COUNT_BUDGET)]
