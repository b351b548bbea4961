"""The part of a store that is about jobs which have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from timeball.core.upkeep import DeleteAnswer, Keep, ReviveAnswer, Trimmed


class Keeping(Protocol):
    """What a store must do about them; see `timeball.store.base.Store` for what holds of all."""

    def revive(self, uuids: Sequence[UUID]) -> list[ReviveAnswer]:
        """Start failed, cancelled and skipped jobs again; say of each what became of it.

        They go to the back of their lanes at once, whatever they once had to wait for, with
        their budgets of retries and crashes whole again. Their history stays.
        """
        ...

    def delete(self, uuids: Sequence[UUID]) -> list[DeleteAnswer]:
        """Delete jobs that have ended, with their history; say of each what became of it.

        A uuid is free again: submitting it once more adds a job.
        """
        ...

    def trim(self, keep: Keep, *, after: tuple[int, ...] = (), limit: int = 500) -> Trimmed:
        """Delete jobs that ended longer ago than they are to be kept, a few at a time.

        Anybody may do it, and any number at once. A job stays that its lane has not passed.

        Args:
            keep: How long to keep jobs.
            after: What the look before returned; begin with ``()``.
            limit: Look at so many at most.
        """
        ...

    def deleted(self) -> int:
        """Return how many jobs were ever deleted: accepted ones are those and the present ones."""
        ...
