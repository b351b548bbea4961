"""The one seam between the rules and durable work: what a store must do.

A store owns all shared state. Every verb is atomic: it happens wholly or not at
all, and what it promises holds whatever other callers do meanwhile. Nobody holds
anything across two verbs, so nobody can deadlock.

Every verb may raise `StoreUnavailable`. Then nothing is known about the call, and
sending it again is always safe: submit goes by uuid, claim by request, settle and
cancel by the turn, fire by the occurrence.

`tests/store/` runs one suite against every store; `memory.py` is the executable
specification, `postgres/` the one that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID, uuid5

from timeball.core.history import JobHistory, OccurrenceRecord, ScheduleRecord, Stray
from timeball.core.records import (
    AGING_DEFAULT_S,
    CancelAnswer,
    DecidedOccurrence,
    Delivery,
    Expired,
    Fired,
    Firing,
    Job,
    JobSpec,
    OccurrenceDecision,
    Promoted,
    Pulse,
    Schedule,
    ScheduleSpec,
    Settlement,
    Standing,
    Turn,
    Verdict,
    ZoneUse,
)
from timeball.core.states import State
from timeball.core.uniqueness import Submitted
from timeball.store.batching import Batching
from timeball.store.calling import Calling
from timeball.store.graph import Graph
from timeball.store.keeping import Keeping
from timeball.store.limiting import Limiting
from timeball.store.noting import Noting
from timeball.store.queueing import Queueing

CLAIM_MAX: Final = 1_000
"""Turns in one claim."""

KEY_BUSY: Final = "key"  # why a job is held that waits for room among the jobs of its key
NO_WORKER: Final = "no_worker"
"""Why a worker gives back a turn whose kind it does not know: the job waits for one that does."""

NO_WORKER_REST: Final = timedelta(seconds=1)
"""How long such a job is left alone, so that those who do not know it do not juggle with it."""

_OCCURRENCES: Final = UUID("d38cbe9b-fd66-4fc7-b1ef-6148007c3383")


def occurrence_job(spec: ScheduleSpec, decision: OccurrenceDecision) -> JobSpec:
    """Return the job of an occurrence that fires: for the same occurrence always the same uuid."""
    nominal_at = decision.nominal_at.astimezone(UTC).isoformat()
    return schedule_job(spec, uuid5(uuid5(_OCCURRENCES, spec.name), nominal_at), decision.args)


def schedule_job(spec: ScheduleSpec, uuid: UUID, args: str) -> JobSpec:
    """Return a job such as a schedule adds."""
    return JobSpec(
        uuid=uuid,
        kind=spec.kind,
        args=args,
        queue=spec.queue,
        priority=spec.priority,
        max_retries=spec.max_retries,
        max_crashes=spec.max_crashes,
        delivery=Delivery(spec.delivery),
        timeout_s=spec.timeout_s,
        key=spec.key,
    )


Decide = Callable[[datetime, list[Schedule]], list[Firing]]
"""Makes firings of schedules that are due by a clock; some may be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs a list shows; newest first."""

    state: State | None = None
    queue: str | None = None
    kind: str | None = None
    before_id: int | None = None
    """Only jobs older than this one: the last id of the page before."""

    from_id: int | None = None
    """Only this job and newer ones: the list looks no further back."""

    limit: int = 50


class Store(Limiting, Batching, Calling, Graph, Queueing, Keeping, Noting, Protocol):
    """Where jobs live. All verbs block; all may be called from any thread."""

    # Submitting

    def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Add jobs and return which they are in the order of `specs`.

        A spec whose uuid is known already adds nothing and gives that job. One whose unique
        key another job holds does as its `on_clash` says: ignored, it gives the holder.

        Raises:
            UniqueClash: A key is held by a job that does not give way; nothing was added.
        """
        ...

    def cancel(self, uuid: UUID) -> CancelAnswer:
        """Keep a job from starting, or ask its running attempt to stop."""
        ...

    # Working

    def register(
        self, name: str, *, kinds: Collection[str], queues: Sequence[str], lease_s: float
    ) -> int:
        """Add a worker and return its id. Jobs that waited for one of `kinds` come back."""
        ...

    def claim(  # noqa: PLR0913 - one question, all of it named
        self,
        worker: int,
        *,
        limit: int,
        request: UUID,
        floors: Mapping[int, int],
        newest: Mapping[int, int] | None = None,
        aging_s: float = AGING_DEFAULT_S,
        permits: Mapping[str, int] | None = None,
    ) -> list[Turn]:
        """Grant up to `limit` pending turns of the worker's queues that are not paused.

        Of the lanes the one comes first whose head has the least ``ready_at - priority *
        aging_s``: a job is overtaken only by those of a higher class that became ready within a
        bounded time after it, and by those of one claim.

        Asking again with the same `request` returns the same turns.

        Args:
            worker: Who asks; must be registered and not given up.
            limit: At most so many; 1 to 1,000.
            request: Made by the caller for this claim.
            floors: Per lane, the oldest lease of this worker that still has open turns.
                What lies below is never looked at again when the worker dies; an absent
                lane says that there is none.
            newest: Per lane, the newest lease that the caller knows of. One beyond it was
                granted to a claim whose answer never came: it is given out again. None:
                do not look.
            aging_s: What a priority class is worth, in seconds; see `Options.aging_s`.
            permits: Per queue whose starts are limited, how many permits the caller has: no
                more turns of it are granted, and none of those that are left out.

        Raises:
            WorkerExpired: The worker was given up for dead: register anew.
        """
        ...

    def settle(self, worker: int, settlements: Sequence[Settlement]) -> list[Verdict]:
        """Record how turns ended; return what became of each, in order.

        A settlement is accepted iff its turn was granted to this worker by the lease it
        names and has not ended. Others change nothing; stale ones are recorded. LOST says that
        the attempt took its process with it: it costs a crash, and one too many fails the job.
        UNCOMMITTED is "already" where the turn has ended in this worker's success after all.
        """
        ...

    def leases(self, worker: int, asked: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return which of these leases, as (lane, seq), there are and are this worker's.

        A failover may have lost some: their turns are not this worker's any more.
        """
        ...

    def cancels(self, turns: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return which of these running turns, as (job, turn), were asked to stop."""
        ...

    def promote(self, limit: int) -> Promoted:
        """Let up to `limit` jobs line up that have fallen due, or whose key has room by now."""
        ...

    def lapse(self, limit: int) -> int:
        """Skip up to `limit` jobs whose deadline passed before they began; return how many.

        No claim grants one of them, whether anybody calls this or not.
        """
        ...

    # Staying alive

    def beat(self, workers: Collection[int]) -> set[int]:
        """Give a sign of life for each of `workers`; return those not given up."""
        ...

    def pulses(self) -> list[Pulse]:
        """Return the latest beat of every worker that has not been given up or retired."""
        ...

    def expire(
        self, worker: int, *, beat: int | None, begun: Collection[tuple[int, int]] | None
    ) -> Expired | None:
        """Give a dead worker up: its open turns end, and their jobs may run elsewhere.

        Turns that began end `lost` and cost their job a crash; the others end `released`.

        Args:
            worker: The dead one.
            beat: The beat it was seen dead with; nothing happens if it has beaten since.
                None: its death is certain (its parent has waited for the process).
            begun: The (job, turn) pairs whose attempts had begun; None: unknown, so all. A mapping
                says when as well, in epoch seconds on the store's clock; 0: unknown.

        Returns:
            None where nothing happened.
        """
        ...

    def retire(self, worker: int) -> None:
        """Take a worker that has settled everything off the list."""
        ...

    # Schedules

    def now(self) -> datetime:
        """Return the store's clock, aware."""
        ...

    def declare(self, spec: ScheduleSpec, standing: Standing) -> int:
        """Add a schedule or change the one of that name; return its id.

        `standing` counts where it is new or its expression, zone, policy or terms have
        changed; otherwise its own cursor stays. An error is over; a pause is not.
        """
        ...

    def withdraw(self, source: str, *, keep: Collection[str]) -> list[str]:
        """Retire the schedules that `source` once declared, but for `keep`; return their names."""
        ...

    def remove(self, name: str) -> None:
        """Retire one schedule.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        ...

    def pause(self, name: str) -> None:
        """Keep a schedule from firing until it is resumed; its cursor stays where it is.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        ...

    def resume(self, schedule: Schedule, standing: Standing) -> bool:
        """Let a paused schedule, or one in error, go on from `standing`.

        Returns:
            False where it has changed since it was read; then nothing has happened.
        """
        ...

    def fire_due(self, limit: int, decide: Decide) -> Fired:
        """Fire what `decide` makes of up to `limit` due schedules that nobody else is at.

        `decide` is told the clock and the schedules, and must not call the store: they are
        kept from others until it has returned and all is written.
        """
        ...

    def fire(self, firings: Sequence[Firing]) -> list[list[int] | None]:
        """Record decisions, add the jobs of those fired and move the cursors.

        Each firing happens wholly or not at all. What is known of a schedule only here is
        applied to its decisions: an occurrence that has been decided stays so; one that
        meets an earlier job of the schedule is dealt with as its `overlap_runs` says; after
        `max_runs` the schedule has no next occurrence. A schedule occurs once in `firings`.

        Returns:
            For each the ids of its jobs; None where the schedule has changed since it was
            read, or somebody is at it.
        """
        ...

    def admit(self, limit: int) -> int:
        """Let up to `limit` queued runs start whose earlier runs have ended; return how many."""
        ...

    def run_now(self, schedule: Schedule, job: JobSpec) -> int:
        """Add one extra job of a schedule and return its id. No occurrence is decided."""
        ...

    def backfill(
        self, schedule: Schedule, decisions: Sequence[OccurrenceDecision]
    ) -> list[int | None] | None:
        """Fire past occurrences whatever was decided about them, but for those that have fired.

        Returns:
            For each the id of its job, None where it had fired before; None instead where
            the schedule was edited since it was read.
        """
        ...

    def suspend(self, schedule: Schedule, error: str) -> None:
        """Put a schedule whose occurrences cannot be computed into state "error"."""
        ...

    def schedules(self) -> list[Schedule]:
        """Return every schedule that is not retired, by name."""
        ...

    def schedule(self, name: str) -> Schedule:
        """Return one schedule.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        ...

    def occurrences(
        self, name: str, *, limit: int, before: datetime | None = None
    ) -> list[DecidedOccurrence]:
        """Return what was decided about the latest occurrences (`before` an instant), latest first.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        ...

    def zones(self) -> list[ZoneUse]:
        """Return which zones active schedules are in, and from which zone data."""
        ...

    def in_zone(self, use: ZoneUse, limit: int) -> list[Schedule]:
        """Return active schedules that were last computed with that zone data."""
        ...

    # Reading; each answer is one snapshot

    def get(self, uuid: UUID) -> Job:
        """Return one job.

        Raises:
            JobNotFound: No job has that id.
        """
        ...

    def ended(self, uuids: Collection[UUID]) -> set[UUID]:
        """Return which of some jobs have reached a terminal state."""
        ...

    def jobs(self, only: JobFilter) -> list[Job]:
        """Return a page of jobs, newest first."""
        ...

    def counts(self, queue: str | None = None) -> dict[State, int]:
        """Return how many jobs are in each state; absent states have none."""
        ...

    def histories(self, since: datetime | None = None) -> Iterator[JobHistory]:
        """Return all that ever happened to each job, in the order of their ids.

        Args:
            since: Begin with the oldest job to which anything has happened since then.
        """
        ...

    def strays(self) -> Iterator[Stray]:
        """Return what there is of jobs that are not on record: nothing, or the store is broken."""
        ...

    def schedule_histories(self) -> Iterator[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]:
        """Return every schedule there ever was, with all that was decided for it, by id."""
        ...
