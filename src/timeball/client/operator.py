"""What operators do with jobs that wait, and with those that have ended."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeball.action.edges import parents_of
from timeball.action.job_specs import aware, check_seconds, checked_name, checked_priority
from timeball.core.dependencies import EdgesAnswer, Rule
from timeball.core.upkeep import DeleteAnswer, MoveAnswer, ReviveAnswer, SnoozeAnswer
from timeball.errors import StoreUnavailable, UsageError
from timeball.store.base import Store

if TYPE_CHECKING:
    from timeball.client.handles import Handle

PART_MAX: Final = 1_000
"""Jobs changed in one transaction."""

_REST_S: Final = 0.05
_PATIENCE_S: Final = 30.0


class Operator:
    """The operator's half of a client."""

    store: Store

    def move(
        self, job: Handle | UUID, *, queue: str | None = None, priority: int | None = None
    ) -> MoveAnswer:
        """Let a job that has not begun wait in another queue, with another priority, or both.

        A pending one goes to the back there; one that is scheduled or waits for something will
        line up there. Its retries follow it, and it takes the slot of its key along. A queue
        that is paused or full takes it all the same. Of one that runs or has ended nothing is
        changed. Asking again for what is so already changes nothing: it keeps its place.

        Args:
            job: The job.
            queue: Its new queue; as it is if left out.
            priority: 0 … 9 (9 starts first); as it is if left out.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        if queue is None and priority is None:
            raise UsageError("move where to? write queue, priority, or both")
        if queue is not None:
            checked_name("queue", queue)
        if priority is not None:
            checked_priority(priority)
        uuid = job if isinstance(job, UUID) else job.uuid
        return self.store.move(uuid, queue=queue, priority=priority)

    def add_edges(
        self, job: Handle | UUID, after: Collection[Any], *, rule: Rule | str = Rule.ALL_SUCCESS
    ) -> EdgesAnswer:
        """Have a job that waits for others wait for more of them: for all of these, or none.

        The job must have been submitted with `after`, and wait for that still; else it may start
        at any moment. Parents may be of any age and in any state, batches too. Naming one again
        changes nothing.

        Args:
            job: The child.
            after: The parents: handles, uuids, or pairs such as (job, "all_done").
            rule: For those that have none of their own; see `Client.submit`.

        Returns:
            ADDED; REFUSED, where the job does not wait like that, or has begun or ended before;
            or NOT_FOUND.

        Raises:
            UsageError: One of them waits for the job itself, by whatever way, which the text
                names; one is not here; or one has another rule there already.
            StoreUnavailable: Try again: what was added is not added twice.
        """
        edges, _ = parents_of({"after": after, "rule": rule})
        deadline = time.monotonic() + _PATIENCE_S
        uuid = job if isinstance(job, UUID) else job.uuid
        while (answer := self.store.add_edges(uuid, edges)) is EdgesAnswer.BUSY:
            if time.monotonic() > deadline:
                raise StoreUnavailable("others were in the way all the time: try again")
            time.sleep(_REST_S)
        return answer

    def snooze(
        self, job: Handle | UUID, *, until: datetime | None = None, delay_s: float | None = None
    ) -> SnoozeAnswer:
        """Let a job that has not begun start at an instant at the earliest.

        A pending one is scheduled, and the slot of its key is free meanwhile; it lines up at the
        back when its time has come. One that is scheduled already keeps its instant where that
        is later. It costs no retry, and its deadline stays. Of one that runs, has ended or waits
        for other jobs nothing is changed.

        Args:
            job: The job.
            until: When it may start, aware.
            delay_s: Or in how many seconds from now, by the store's clock; ten years at most.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        if (until is None) == (delay_s is None):
            raise UsageError("snooze until when? write until=, an instant, or delay_s=, seconds")
        if delay_s is not None:
            check_seconds("delay_s", delay_s, least=0)
            until = self.store.now() + timedelta(seconds=delay_s)
        uuid = job if isinstance(job, UUID) else job.uuid
        return self.store.snooze(uuid, aware("until", until))

    def revive(self, job: Handle | UUID) -> ReviveAnswer:
        """Start a failed, cancelled or skipped job again: at once, with all its retries.

        Its history stays. A job that runs at most once is started again too: the promise
        binds Timeball, not you.
        """
        return self.revive_many([job])[0]

    def revive_many(self, jobs: Iterable[Handle | UUID]) -> list[ReviveAnswer]:
        """Start jobs again, 1,000 in a transaction; return what became of each, in order."""
        return [answer for part in _parts(jobs) for answer in self.store.revive(part)]

    def delete(self, job: Handle | UUID) -> DeleteAnswer:
        """Delete a job that has ended, with its history. One that has not is left alone."""
        return self.delete_many([job])[0]

    def delete_many(self, jobs: Iterable[Handle | UUID]) -> list[DeleteAnswer]:
        """Delete ended jobs, 1,000 in a transaction; return what became of each, in order."""
        return [answer for part in _parts(jobs) for answer in self.store.delete(part)]


def _parts(jobs: Iterable[Handle | UUID]) -> Iterator[list[UUID]]:
    uuids = (job if isinstance(job, UUID) else job.uuid for job in jobs)
    while part := list(islice(uuids, PART_MAX)):
        yield part
