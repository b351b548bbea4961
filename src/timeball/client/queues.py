"""Queues as a whole: what waits in them, and pausing them."""

from __future__ import annotations

from getpass import getuser
from platform import node

from timeball.action.job_specs import checked_name
from timeball.core.queues import DEPTH_MAX, Queue
from timeball.errors import UsageError
from timeball.store.base import Store


class Queues:
    """The part of a client that is about queues."""

    store: Store

    def queues(self) -> list[Queue]:
        """Return every queue with what waits in it, what runs, and what was set, by name.

        Cheap, however long the queues are: numbers of jobs end at 10,000.
        """
        return self.store.queues()

    def pause_queue(self, name: str, *, by: str | None = None) -> bool:
        """Let no job of a queue start until it is resumed: from when this returns, none does.

        What runs goes on, and what a worker had been granted before begins. Jobs may still be
        submitted, and retries line up; all of them wait. Priorities make no difference.

        Args:
            name: The queue; it need not have had a job yet.
            by: Who pauses it, for `queues()`; else this user and machine.

        Returns:
            False where it was paused before; then it stays noted who did it, and when.
        """
        checked_name("queue", name)
        return self.store.pause_queue(name, checked_name("by", by or _caller()))

    def resume_queue(self, name: str) -> bool:
        """Let jobs of a paused queue start again; return False where it was not paused."""
        return self.store.resume_queue(checked_name("queue", name))

    def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Let a queue take no more jobs while so many are pending and held in it.

        A submission that would exceed it raises `QueueFull`, and none of it is added: of
        `submit_many`, none of the thousand that it belongs to. Jobs of schedules come in
        whatever the depth, and so do retries. Submissions that are made at the same moment do
        not see each other: together they may exceed it by what they add.

        Args:
            name: The queue.
            max_depth: 1 to 1,000,000; None takes the limit away.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        checked_name("queue", name)
        if max_depth is not None and not (type(max_depth) is int and 1 <= max_depth <= DEPTH_MAX):
            raise UsageError(
                f"max_depth is {max_depth!r}: write 1 to {DEPTH_MAX:,}, or None for no limit"
            )
        self.store.bound_queue(name, max_depth)


def _caller() -> str:
    try:
        user = getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{node() or 'localhost'}"
