"""The part of a store that has jobs wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from timeball.core.batches import BATCH
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import Edge, EdgesAnswer, Parent
from timeball.core.records import JobSpec, Settlement, Verdict
from timeball.core.uniqueness import OnClash
from timeball.errors import UsageError

LINK_MAX: Final = 1_000
"""Edges linked in one transaction."""


CANCEL_IT: Final = "write client.get_batch(uuid).cancel(), or timeball batch cancel"


def comes_after(spec: JobSpec) -> bool:
    """Return whether a job waits until its parents have ended, even of none, or for a call."""
    return bool(spec.after) or spec.kind in {BATCH, CALLBACK}


def check_cancel(spec: JobSpec) -> None:
    """Raise `UsageError` if a job is a batch, whose end is that of its members."""
    if spec.kind == BATCH:
        raise UsageError(f"job {spec.uuid} is a batch: {CANCEL_IT}")


def ends_or_waits(spec: JobSpec) -> bool:
    """Return whether there may be something to link once this job was submitted."""
    return bool(spec.after) or (spec.unique is not None and spec.unique.on_clash is OnClash.REPLACE)


def links_of(specs: Sequence[JobSpec]) -> range:
    """Return how often to link so that all edges of jobs just submitted are."""
    edges = sum(len(spec.after) for spec in specs)
    return range(edges // LINK_MAX + any(map(ends_or_waits, specs)))


SPAWNS: Final = "spawns what waits for"
WOULD_WAIT: Final = "would wait for"


def cycle_text(job: int, does: str, path: Sequence[int]) -> str:
    """Return how a caller is told that a job would wait for itself, along jobs by their numbers."""
    names = ", which waits for ".join(f"job {each}" for each in path)
    return f"job {job} {does} {names}: a cycle; leave one of these edges out"


class Graph(Protocol):
    """What a store must do about edges; see `timeball.store.base.Store` for what holds of all.

    A submit that names a parent which is not here, nor earlier in the same call, raises a
    `UsageError` and adds nothing.

    What the end of a job means for its children happens in the commit that ends it, whatever
    ended it. Three leave that to `link`: a deadline that has passed, a schedule's run that a
    newer one replaces, and a job that gives way to a newer one of its unique key.
    """

    def link(self, limit: int) -> int | None:
        """Look whether parents have ended before, for up to `limit` edges; return how many.

        Until that was done for an edge, its child waits. `submit` does it for its own jobs, but
        not inside a caller's transaction: call it after the commit, or leave it to the workers.

        Returns:
            None where others were in the way: try again.
        """
        ...

    def add_edges(self, job: UUID, after: Sequence[Edge]) -> EdgesAnswer:
        """Have a job wait for more parents that waits for some, and has neither begun nor ended.

        All of them, or none. An edge that is there with the same rule stays as it is. Whether they
        have ended before is looked at as by `link`.

        Raises:
            UsageError: A parent is not here, has another rule there already, or waits for the job
                itself, by whatever way: the text names it; or they are too many.
        """
        ...

    def spawn(self, worker: int, said: Settlement) -> Verdict:
        """Record that a turn has ended `AWAITED`, and add the jobs that its job waits for.

        All of it happens, or nothing: a stale settlement adds no job, and sending an accepted one
        again adds none either. Where a cancel was requested, the job ends cancelled instead.
        Once all that it spawned have ended, the job gets another turn, with `Turn.awaited`.

        Raises:
            UsageError: They cannot be added, as in `submit`, or the job would wait for itself.
            UniqueClash, QueueFull: As in `submit`.
        """
        ...

    def parents(self, job_id: int) -> list[Parent]:
        """Return the parents of a job, in the order of their ids."""
        ...
