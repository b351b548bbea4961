"""Batches from a client: made with their jobs, then waited for, counted, cancelled, tried again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast
from uuid import UUID

from timeball.action.draft import Draft
from timeball.action.draft_specs import draft_specs
from timeball.action.job_call import JobCall
from timeball.action.job_specs import OPTIONS, job_spec, job_specs
from timeball.chance import new_uuid
from timeball.client.batch_plan import Plan
from timeball.client.handles import Handle
from timeball.core.batch_report import batch_report, critical_path
from timeball.core.batches import (
    BatchLine,
    BatchState,
    Member,
    ReopenAnswer,
    failed_part,
)
from timeball.core.records import CancelAnswer, JobSpec
from timeball.core.report import BatchReport
from timeball.core.states import State
from timeball.errors import StoreUnavailable, UsageError
from timeball.store.base import Store

if TYPE_CHECKING:
    from timeball.client.sync import Client

_PART_MAX: Final = 1_000
_CANCELLED_MAX: Final = 200
"""Jobs cancelled at a time: meanwhile nothing is claimed in their lanes."""

_REST_S: Final = 0.05
_PATIENCE_S: Final = 30.0


class Batch:
    """Jobs that end together: in the database one more job that no worker runs.

    As a context manager it takes jobs until the block ends, and then is there with all of them,
    or not at all. `uuid` names it in the `after` of others.
    """

    def __init__(self, client: Client, uuid: UUID, plan: Plan | None = None) -> None:
        self.client = client
        self.uuid = uuid
        self._plan = plan

    def __repr__(self) -> str:
        return f"<Batch {self.uuid}>"

    # Its jobs

    def submit(self, job: Callable[..., Any] | str | JobCall, /, **arguments: Any) -> Handle:
        """Add one job and return its handle; see `Client.submit`.

        Within the block it is there once that ends; until then the handle's `id` is 0. Afterwards
        it is added at once, as long as the batch has not ended: from a job of the batch that is
        surely so. Then its `after` names jobs of the batch only.

        Raises:
            UsageError: Something that can never work; or the batch has ended or was cancelled.
        """
        if "connection" in arguments:
            raise UsageError("a batch is made in a transaction of its own: leave connection out")
        return self._add([job_spec(job, arguments)])[0]

    def submit_many(
        self, job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle]:
        """Add one job for each mapping of arguments; return their handles."""
        unknown = options.keys() - (OPTIONS - {"uuid", "args", "connection"})
        if unknown:
            raise UsageError(f"{', '.join(sorted(unknown))}: not an option of submit_many")
        return self._add(job_specs(job, each, options))

    def submit_all(self, drafts: Iterable[Draft]) -> list[Handle]:
        """Add different jobs with edges among them; return their handles in order."""
        return self._add(draft_specs(drafts))

    def batch(self, name: str = "", **options: Any) -> Batch:
        """Return a batch in this batch, to be made in a block within the block of this one.

        Args:
            name: For people.
            **options: `after`, `rule`, `ruled_out` and `open`; see `Client.batch`.
        """
        if self._plan is None:
            raise UsageError("a batch goes into another while that is made: write it in the block")
        plan = self._plan.inside(new_uuid(), name, options)
        return Batch(self.client, plan.uuid, plan)

    def _add(self, specs: list[JobSpec]) -> list[Handle]:
        if self._plan is not None:
            return [self._plan.add(Handle(self.client, spec.uuid, 0), spec) for spec in specs]
        added = []
        for start in range(0, len(specs), _PART_MAX):
            added += self.client.store.add_members(self.uuid, specs[start : start + _PART_MAX])
        return [Handle(self.client, job.uuid, job.id) for job in added]

    def __enter__(self) -> Self:
        if self._plan is None:
            raise UsageError("this batch was made before: a block makes it")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        plan, self._plan = self._plan, None
        if plan is not None and kind is not None:
            plan.dropped = True
        elif plan is not None and not plan.is_inner:
            plan.submit(self.client.store)

    def close(self) -> bool:
        """Let an open batch end with the last of its jobs; return whether it was open."""
        return self.client.store.close_batch(self.uuid)

    # Looking

    def state(self) -> BatchState:
        """Return the batch as it is now, with how many of its jobs are in each state.

        All from one snapshot, and exact; jobs of batches in it count too, each once.

        Raises:
            JobNotFound: It was deleted, or its block was left by an error.
        """
        return self.client.store.batch(self.uuid)

    def counts(self) -> Mapping[State, int]:
        """Return how many of its jobs are in each state, all from one snapshot."""
        return self.state().states

    def progress(self) -> float:
        """Return the part of its jobs that has ended, 0 to 1."""
        return self.state().progress

    def members(self) -> list[Member]:
        """Return the batch, the batches in it and all their jobs, by id, from one snapshot."""
        return self.client.store.batch_members(self.uuid)

    def report(self) -> BatchReport:
        """Return makespan, floors, efficiency and success rates, as of a scheduler's batch.

        Of the attempts that have ended. The slots are as many as were in use at once, the limits
        on starts those that have held all the time, and the clocks are the store's.
        """
        return batch_report(self.members(), self.client.store.rates())

    def critical_path(self) -> list[Member]:
        """Return the chain of jobs, each waiting for the one before, that took longest."""
        return critical_path(self.members())

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        on_progress: Callable[[BatchState], None] | None = None,
    ) -> BatchState:
        """Return the batch once it has ended.

        Args:
            timeout_s: Give up after so many seconds; None waits for ever.
            on_progress: Called now and then with how it is.

        Raises:
            TimeoutError: It has not ended in time.
        """
        tell = None if on_progress is None else lambda _: on_progress(self.state())
        self.client.wait([self.uuid], timeout_s, on_progress=tell)
        return self.state()

    # Changing

    def cancel(self) -> dict[CancelAnswer, int]:
        """Keep all its jobs from starting, and ask those that run to stop; return what that did.

        The batches in it too, and nothing can be added any more. It ends with the last of those
        that run. To cancel a part, cancel a batch in it, or a job: what needs that is skipped.
        """
        answers: Counter[CancelAnswer] = Counter()
        store = self.client.store
        for uuid, is_batch in store.batch_left(self.uuid):
            if is_batch:
                store.close_batch(uuid, stop=True)
        # Looked at again and again: until it was closed somebody may have added some, and until it
        # was told of its cancel a job may have spawned some.
        seen: set[UUID] = set()
        while jobs := [
            uuid
            for uuid, is_batch in store.batch_left(self.uuid)
            if not is_batch and uuid not in seen
        ]:
            seen.update(jobs)
            for start in range(0, len(jobs), _CANCELLED_MAX):
                part = jobs[start : start + _CANCELLED_MAX]
                done = store.cancel_many(part)
                answers[CancelAnswer.CANCELLED] += len(done)
                answers.update(store.cancel(uuid) for uuid in part if uuid not in done)
        return {answer: count for answer, count in answers.items() if count}

    def retry(self) -> int:
        """Start its failed part again and return how many jobs that are.

        Those that failed or were cancelled, and those that were ruled out because of them, each
        after its parents. The batch waits for them and ends anew; so do the batches that they are
        in. What came after the batch and was told of its end before is not told again.

        Raises:
            UniqueClash: A unique key is another job's by now.
            StoreUnavailable: Others were in the way for half a minute.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while part := failed_part(self.members()):
            answer = self.client.store.reopen(part)
            if answer is ReopenAnswer.DONE:
                return len(part)
            if time.monotonic() > deadline:
                raise StoreUnavailable("others were in the way all the time: try again")
            time.sleep(_REST_S)
        return 0


class Batches:
    """The part of a client that makes batches, and finds them again."""

    store: Store

    def batch(self, name: str = "", **options: Any) -> Batch:
        """Return a batch to be made in a block, with its jobs, in one transaction.

        Args:
            name: For people.
            **options: `after`, `rule` and `ruled_out`: what its jobs come after, each that comes
                after none of the others; see `Client.submit`. `open`: whether it waits for
                `Batch.close` too before it ends.

        Example:
            >>> with client.batch("nightly") as nightly:  # doctest: +SKIP
            ...     parts = nightly.submit_many("extract", [{"part": n} for n in range(20)])
            ...     nightly.submit("load", after=parts)
            >>> client.submit("report", after=[nightly], rule="all_done")  # doctest: +SKIP
        """
        plan = Plan(new_uuid(), name, options)
        return Batch(cast("Client", self), plan.uuid, plan)

    def get_batch(self, batch: Batch | UUID) -> Batch:
        """Return a batch that was made before.

        Raises:
            JobNotFound: No batch has that id.
        """
        uuid = batch if isinstance(batch, UUID) else batch.uuid
        return Batch(cast("Client", self), self.store.batch(uuid).uuid)

    def batches(self, *, limit: int = 50, before_id: int | None = None) -> list[BatchLine]:
        """Return a page of batches, newest first; `before_id` is the last id of the page before."""
        return self.store.batches(limit=limit, before_id=before_id)
