"""The part of a store that is about batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from timeball.core.batches import BatchLine, BatchState, Member, ReopenAnswer
from timeball.core.records import JobSpec
from timeball.core.uniqueness import Submitted


class Batching(Protocol):
    """What a store must do about batches; see `timeball.store.base.Store` for what holds of all.

    A batch is submitted like a job, with kind `BATCH` and edges of rule "member" to its jobs. It
    ends in the commit that ends the last of them, unless it is open: `end_of` says how. All of
    these raise `JobNotFound` where there is no batch of that uuid.
    """

    def add_members(self, batch: UUID, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Add jobs to a batch that has not ended, and return which they are, in order.

        They may come after each other and after jobs of the batch, so that no cycle can be
        written. Either they are there before the batch ends, or nothing has happened.

        Raises:
            UsageError: It has ended or was cancelled; or a job names others, was there before, or
                is a batch.
        """
        ...

    def close_batch(self, batch: UUID, *, stop: bool = False) -> bool:
        """Let an open batch end with the last of its jobs, now where none is left.

        Args:
            batch: Which.
            stop: Whether to refuse from now on what is to be added.

        Returns:
            False where it was not open.
        """
        ...

    def cancel_many(self, uuids: Sequence[UUID]) -> set[UUID]:
        """Keep jobs from starting of which that can be said at once, and return which.

        For good, as by `cancel`. The others, which run or have ended or are in other hands, are
        left to that. What it means for their children happens in the same commit, or is left to
        `link` where those are in other hands.
        """
        ...

    def reopen(self, jobs: Sequence[tuple[int, int]]) -> ReopenAnswer:
        """Start ended jobs of a batch again, given as (job, turn), all or none.

        Each starts once those of them that it comes after have ended anew; that is decided again.
        Batches that they are in wait for them again. What comes after a batch and was told of its
        end before is not told again.

        Raises:
            UniqueClash: A unique key is another job's by now.
        """
        ...

    def batch(self, batch: UUID) -> BatchState:
        """Return a batch, with how many of its jobs are in each state."""
        ...

    def batches(self, *, limit: int, before_id: int | None = None) -> list[BatchLine]:
        """Return a page of batches, newest first."""
        ...

    def batch_left(self, batch: UUID) -> list[tuple[UUID, bool]]:
        """Return what of a batch has not ended: its jobs and batches, and which of these each is.

        The batches first, the batch itself among them, then the jobs; each the newest first.
        """
        ...

    def batch_members(self, batch: UUID) -> list[Member]:
        """Return a batch, the batches in it and all their jobs, by id."""
        ...
