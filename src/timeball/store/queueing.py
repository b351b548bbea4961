"""The part of a store that is about queues."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from uuid import UUID

from timeball.core.queues import Queue
from timeball.core.upkeep import MoveAnswer, SnoozeAnswer


class Queueing(Protocol):
    """What a store must do about queues; see `timeball.store.base.Store` for what holds of all."""

    def pause_queue(self, name: str, by: str) -> bool:
        """Grant no further turn of a queue, whatever the lane, until it is resumed.

        Holds from when this returns. What was granted before goes on, and what was claimed and
        has not begun yet begins: it is running. Jobs may still be submitted.

        Returns:
            False where it was paused before; then it stays noted who did it, and when.
        """
        ...

    def resume_queue(self, name: str) -> bool:
        """Grant turns of a paused queue again; False where it was not paused."""
        ...

    def bound_queue(self, name: str, max_depth: int | None) -> None:
        """Let `submit` refuse what would take a queue beyond so many pending and held jobs.

        None: no limit. What waits already stays. Jobs of schedules, retries and revived ones
        come in whatever the depth. Submissions that are made at the same moment do not see
        each other, so that together they may exceed it.
        """
        ...

    def move(self, uuid: UUID, *, queue: str | None, priority: int | None) -> MoveAnswer:
        """Let a job that has not begun wait in another queue or class; None: as before.

        A pending one goes to the back of its new lane: its turn ends `moved`, the next takes its
        place. One that may not start yet will line up there. Retries follow it. It takes the
        slot of its key along. A queue that is paused or full takes it all the same. Where it is
        already it keeps its place, so that asking again changes nothing.
        """
        ...

    def snooze(self, uuid: UUID, until: datetime) -> SnoozeAnswer:
        """Let a job that has not begun start at an instant at the earliest.

        The turn of a pending one ends `snoozed`, the next is scheduled; the slot of its key is
        free meanwhile. Of one that is scheduled the later of both instants counts, so that none
        starts sooner, and asking again changes nothing. Its counts, its deadline and its lane stay.
        """
        ...

    def queues(self) -> list[Queue]:
        """Return every queue that has had a job or a setting, by name. No O(jobs) work."""
        ...
