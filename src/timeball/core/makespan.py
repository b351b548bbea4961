"""How long a batch took, and where the time of its slots went: what was measured.

All instants are whole nanoseconds of one monotonic clock, so that sums are exact. `floors.py` says
how fast the batch could have been, `report.py` puts both together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from timeball.core.floors import Chain
from timeball.core.states import Ending

J = TypeVar("J", bound=Hashable)


class AttemptRecord(NamedTuple, Generic[J]):
    """One attempt that has started. An attempt that never started has no record."""

    job: J
    attempt: int
    """1, 2, 3 … per job."""

    slot: int
    """Which of the W slots it occupied: 0 to W - 1."""

    queued_ns: int
    """From here on it might start: submitted, released by its parents, or its backoff over."""

    started_ns: int
    """The reading under the lock that claimed it: the stamp that the limiter knows. Where the
    start was stamped again, the later stamp."""

    finished_ns: int
    """When the callable was done with. Of one that still runs: the instant of this record."""

    ending: Ending | None
    """None: it still runs."""

    limiter_ns: int = 0
    """How much of its time in the queue was the limiter's doing."""

    backoff_ns: int = 0
    """The wait that was prescribed between the attempt before and this one."""

    lock_ns: int = 0
    """How long its worker waited for the scheduler's lock before it was claimed."""

    weight: int = 1
    """As how many starts it counted for the limit."""

    @property
    def ran_ns(self) -> int:
        """Return how long it occupied its slot."""
        return self.finished_ns - self.started_ns


class Span(NamedTuple):
    """From the first start to the last end."""

    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        """Return the makespan."""
        return self.to_ns - self.from_ns


def span_of(attempts: Sequence[AttemptRecord[J]]) -> Span:
    """Return the span of a batch: latest end minus earliest start, over attempts that started.

    It begins with the first start, not with the submit: a batch that was submitted while the
    scheduler was busy elsewhere, or scheduled for tomorrow, took no longer for that. The wait in
    the queue is reported beside it. Attempts that failed count like all others: they took a slot
    and a permit. For no attempts at all it has no length.
    """
    if not attempts:
        return Span(0, 0)
    return Span(min(a.started_ns for a in attempts), max(a.finished_ns for a in attempts))


def chains_of(attempts: Iterable[AttemptRecord[J]]) -> dict[J, Chain]:
    """Return each job's attempts in their order, for `floors.bound`."""
    found: dict[J, tuple[list[int], list[int], int]] = {}
    for record in sorted(attempts, key=lambda record: record.attempt):
        durations, waits, _ = found.setdefault(record.job, ([], [], record.weight))
        if durations:
            waits.append(record.backoff_ns)
        durations.append(record.ran_ns)
    return {job: Chain(*chain) for job, chain in found.items()}


class Cause(StrEnum):
    """Why a slot runs no callable. Where several apply, the first in this order is charged."""

    LIMITER = "limiter"  # a job is ready, and a limit (on starts, or per key) holds it back
    RETRY = "retry wait"  # none is ready; some job waits for its backoff or snooze
    DEPENDENCY = "dependency"  # some job waits for its parents
    SCHEDULE = "schedule"  # some job is not to start before a later instant
    QUEUE = "empty queue"  # no job is left that has not started
    DISPATCH = "dispatch"  # a job may start and does not yet: the scheduler's own time


class IdleSpan(NamedTuple):
    """A slot ran no callable from here to there, for one cause."""

    slot: int
    from_ns: int
    to_ns: int
    cause: Cause


class IdleLedger(NamedTuple):
    """Where the time of all slots went, exactly: ``running + causes == W * makespan``."""

    running_ns: int
    causes: Mapping[Cause, int]
    """Nanoseconds charged to each cause, summed over slots; every cause is named."""

    total_ns: int
    """W times the makespan."""

    def share(self, ns: int) -> float:
        """Return `ns` as a part of the whole, 0 to 1."""
        return ns / self.total_ns if self.total_ns else 0.0


def idle_ledger(
    attempts: Sequence[AttemptRecord[J]], idle: Iterable[IdleSpan], *, workers: int
) -> IdleLedger:
    """Return what the slots did from the first start to the last end.

    What the engine must record, and no more:

    - An `IdleSpan` whenever a slot parks because no attempt may start: from the reading at which
      that was decided to the one at which it no longer held. Where the cause changes while the
      slot is parked, one span ends and the next begins at the same reading.
    - The cause is the first of `Cause` that applies at that reading; it is the same for all
      slots that are idle then. `DISPATCH` need not be recorded at all: time of a slot that is
      neither in an attempt nor in a span is the scheduler's own, and is charged to it here.
      So forgetting a span can never make the scheduler look better than it is.
    - A slot that was never put to use, because its thread was not yet needed, has one span
      over the whole batch. Spans may reach beyond the batch: they are cut to it.
    - Readings of the clock that stamps the attempts. A span ends no later than the next attempt
      of its slot starts; a start that was stamped again moves the end of the span with it.

    The attempts are all that these slots ran: of a part of them, the others would be charged to
    dispatch. Two things of one slot at the same time are a bug of the engine, and asserted.
    """
    span = span_of(attempts)
    causes = dict.fromkeys(Cause, 0)
    slots: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
    for record in attempts:
        slots[record.slot].append((record.started_ns, record.finished_ns))
    for slot, from_ns, to_ns, cause in idle:
        slots[slot].append((from_ns, to_ns))
        causes[cause] += max(0, min(to_ns, span.to_ns) - max(from_ns, span.from_ns))
    for slot, times in enumerate(slots):
        _check_apart(slot, times)
    running_ns = sum(record.ran_ns for record in attempts)
    total_ns = workers * span.length_ns
    causes[Cause.DISPATCH] += total_ns - running_ns - sum(causes.values())
    return IdleLedger(running_ns, MappingProxyType(causes), total_ns)


def _check_apart(slot: int, times: list[tuple[int, int]]) -> None:
    """Assert that a slot did one thing at a time; else the rest would not be dispatch."""
    free_at = None
    for from_ns, to_ns in sorted(times):
        assert from_ns <= to_ns, f"slot {slot}: from {from_ns} back to {to_ns}"
        assert free_at is None or free_at <= from_ns, f"slot {slot}: two things at {from_ns}"
        free_at = to_ns


PERCENTS: Final = (50, 95, 99)


class Percentiles(NamedTuple):
    """Values in nanoseconds that so many percent of all do not exceed (nearest rank)."""

    p50: int
    p95: int
    p99: int
    most: int


def percentiles(values_ns: Iterable[int]) -> Percentiles | None:
    """Return the percentiles of `values_ns`, each of them one of the values; None for none."""
    ranked = sorted(values_ns)
    if not ranked:
        return None
    p50, p95, p99 = (ranked[-(-len(ranked) * percent // 100) - 1] for percent in PERCENTS)
    return Percentiles(p50, p95, p99, ranked[-1])
