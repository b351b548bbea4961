"""The report on a batch: makespan, bound, success, latencies, and why it was not faster."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from timeball.core.floors import Bound, Chain, StartLimit, bound
from timeball.core.makespan import (
    AttemptRecord,
    IdleLedger,
    IdleSpan,
    Percentiles,
    chains_of,
    idle_ledger,
    percentiles,
    span_of,
)
from timeball.core.states import TERMINAL, Ending, State

J = TypeVar("J", bound=Hashable)

SCHEMA_VERSION: Final = 1
"""Raised when a key of `BatchReport.as_dict` changes its meaning or goes; new keys may come."""

SETS: Final = MappingProxyType(
    {
        "pending": frozenset({State.SCHEDULED, State.WAITING, State.PENDING}),
        "running": frozenset({State.RUNNING}),
        "completed": frozenset({State.SUCCEEDED}),
        "failed": TERMINAL - {State.SUCCEEDED},
    }
)
"""The four sets of jobs, as views of the states: every state is in one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord(Generic[J]):
    """What an engine hands over about a batch, all of one instant."""

    states: Mapping[J, State]
    """Every job that was submitted, whether it ever started or not."""

    attempts: Sequence[AttemptRecord[J]]
    """Every attempt that started."""

    workers: int
    idle: Sequence[IdleSpan] = ()
    limit: StartLimit | None = None
    """The limit on starts that held for the whole batch, on the clock of the record."""

    limits: Sequence[tuple[StartLimit, Collection[J]]] = ()
    """Further limits on starts that held for the whole batch, each of some of its jobs."""

    parents: Mapping[J, Collection[J]] = field(default_factory=dict)
    """For each job those whose end it waited for; see `floors.bound`."""

    clock_ns: int = 0
    """How far the record's clock may be from the one that the limiter and the backoff go by.
    0 where they are the same, as in the in-process engine: then the bound holds to the
    nanosecond, because all sums are exact and one clock never contradicts itself."""


class SuccessRates(NamedTuple):
    """The same successes over four denominators; None where the denominator is 0.

    The first is *the* success rate. Who submits N jobs wants N results, so N is what they are
    measured against. A job that succeeded after retries counts in full: retries are how the
    scheduler earns its keep, and its caller got the result. A job that was cancelled, skipped or
    lost with its worker stays in the denominator, whoever was to blame: leaving them out would
    let a scheduler raise its rate by giving up more, and 3 successes, 997 cancelled, would read
    as 100 %. So do jobs that have not ended yet: in the middle of a batch the rate is what is
    certain so far.

    The others answer other questions, and no two of them are to be compared with each other.
    """

    submitted: float | None
    """Succeeded / all jobs submitted."""

    decided: float | None
    """Succeeded / (succeeded + failed): how good the jobs are, whoever was called off aside."""

    first_try: float | None
    """Succeeded in one attempt / all jobs submitted: how much rests on retries."""

    attempts: float | None
    """Succeeded / attempts started: how much of what was paid for was of use. The turn that only
    ends a job which has spawned others is none here, nor a retry: nothing is called in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """How a batch went. ``print`` it, or put `as_dict` on file."""

    workers: int
    states: Mapping[State, int]
    """Jobs in each state; every state is named."""

    started: int
    """Jobs of which at least one attempt started."""

    attempts: int
    retries: int
    """Attempts that came after the first of their job, but for turns that only end one."""

    makespan_ns: int
    """Latest end minus earliest start over all attempts that started; 0 if none did."""

    bound: Bound
    success: SuccessRates
    queue_wait: Percentiles | None
    """From when an attempt might start to its start. None where none started."""

    limiter_wait: Percentiles | None
    """The part of it that the limiter caused."""

    run_time: Percentiles | None
    """From start to end, over attempts that have ended; None where none has."""

    ledger: IdleLedger

    @classmethod
    def of(cls, record: BatchRecord[J]) -> BatchReport:
        """Return the report on what an engine recorded.

        Raises:
            AssertionError: The record contradicts itself: a slot did two things at once, or the
                batch was faster than its own workers, limit, backoff and parents allow. That is
                a bug of the engine, and no figure of it could be believed.
        """
        attempts = record.attempts
        makespan_ns = span_of(attempts).length_ns
        chains = chains_of(attempts)
        assert chains.keys() <= record.states.keys(), "an attempt of a job that was not submitted"
        least = _least(record, chains)
        assert least.ns <= makespan_ns + record.clock_ns, (
            f"took {makespan_ns} ns, which {least.binding} does not allow below {least.ns} ns"
        )
        tries = _tries(attempts, {job: len(chain.durations_ns) for job, chain in chains.items()})
        return cls(
            workers=record.workers,
            states=MappingProxyType(_count(record.states.values())),
            started=len(chains),
            attempts=len(attempts),
            retries=sum(tries.values()) - len(tries),
            makespan_ns=makespan_ns,
            bound=least,
            success=_success(record.states, tries),
            queue_wait=percentiles(a.started_ns - a.queued_ns for a in attempts),
            limiter_wait=percentiles(a.limiter_ns for a in attempts),
            run_time=percentiles(a.ran_ns for a in attempts if a.ending is not None),
            ledger=idle_ledger(attempts, record.idle, workers=record.workers),
        )

    @property
    def jobs(self) -> int:
        """Return N, the jobs that were submitted."""
        return sum(self.states.values())

    @property
    def sets(self) -> dict[str, int]:
        """Return how many jobs are in each of the four sets."""
        return {name: sum(self.states[s] for s in states) for name, states in SETS.items()}

    @property
    def success_rate(self) -> float | None:
        """Return succeeded / submitted; None if nothing was. `SuccessRates` defends the choice."""
        return self.success.submitted

    @property
    def efficiency(self) -> float:
        """Return bound / makespan, in (0, 1]: 1 is a schedule that cannot be beaten.

        A batch that took no time is one; 0 is left for attempts too short for the clock that
        yet did not all start at once.
        """
        return min(1.0, self.bound.ns / self.makespan_ns) if self.makespan_ns else 1.0

    @property
    def starts_per_s(self) -> float | None:
        """Return starts over the makespan; None where it has no length."""
        return _ratio(self.attempts * 1e9, self.makespan_ns)

    @property
    def succeeded_per_s(self) -> float | None:
        """Return successes over the makespan; None where it has no length."""
        return _ratio(self.states[State.SUCCEEDED] * 1e9, self.makespan_ns)

    def as_dict(self) -> dict[str, Any]:
        """Return the whole report as JSON values: times in whole nanoseconds, rates as 0 to 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "workers": self.workers,
            "jobs": self.jobs,
            "started": self.started,
            "attempts": self.attempts,
            "retries": self.retries,
            "states": {str(state): count for state, count in self.states.items()},
            "sets": self.sets,
            "success_rate": self.success._asdict(),
            "makespan_ns": self.makespan_ns,
            "bound_ns": self.bound.ns,
            "binding": str(self.bound.binding),
            "floors_ns": {str(floor): ns for floor, ns in self.bound.floors.items()},
            "approximation_ns": self.bound.approximation_ns,
            "efficiency": self.efficiency,
            "starts_per_s": self.starts_per_s,
            "succeeded_per_s": self.succeeded_per_s,
            "queue_wait_ns": self.queue_wait and self.queue_wait._asdict(),
            "limiter_wait_ns": self.limiter_wait and self.limiter_wait._asdict(),
            "run_time_ns": self.run_time and self.run_time._asdict(),
            "running_ns": self.ledger.running_ns,
            "idle_ns": {str(cause): ns for cause, ns in self.ledger.causes.items()},
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _least(record: BatchRecord[J], chains: Mapping[J, Chain]) -> Bound:
    """Return the bound of a batch: of all its jobs, and of those of each limit among them."""
    least = bound(chains, workers=record.workers, limit=record.limit, parents=record.parents)
    for limit, jobs in record.limits:
        some = {job: chains[job] for job in jobs if job in chains}
        part = bound(some, workers=record.workers, limit=limit)
        least = least.raised_to(part)
    return least


def _count(states: Collection[State]) -> dict[State, int]:
    counts = dict.fromkeys(State, 0)
    for state in states:
        counts[state] += 1
    return counts


def _tries(attempts: Iterable[AttemptRecord[J]], started: Mapping[J, int]) -> dict[J, int]:
    """Return how often each job was called, given how many attempts of it have started."""
    tries = dict(started)
    for each in attempts:
        if each.ending is Ending.AWAITED and each.attempt < started[each.job]:
            tries[each.job] -= 1  # the next one only says how those ended that it had spawned
    return tries


def _success(states: Mapping[J, State], tries: Mapping[J, int]) -> SuccessRates:
    succeeded = [job for job, state in states.items() if state is State.SUCCEEDED]
    failed = sum(state is State.FAILED for state in states.values())
    first = sum(tries.get(job) == 1 for job in succeeded)
    return SuccessRates(
        submitted=_ratio(len(succeeded), len(states)),
        decided=_ratio(len(succeeded), len(succeeded) + failed),
        first_try=_ratio(first, len(states)),
        attempts=_ratio(len(succeeded), sum(tries.values())),
    )


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


# --- text ---------------------------------------------------------------------------------------

BAR: Final = 24


def _lines(report: BatchReport) -> Iterator[str]:
    success, sets = report.success, report.sets
    fine = [f"{count:,} {state}" for state, count in report.states.items() if count]
    yield f"Batch     {report.jobs:,} jobs: {', '.join(fine) or 'none'}"
    yield f"Sets      {', '.join(f'{name} {count:,}' for name, count in sets.items())}"
    yield (
        f"Success   {_percent(success.submitted)} of all jobs submitted "
        f"({_percent(success.decided)} of succeeded and failed, "
        f"{_percent(success.first_try)} at first try, {_percent(success.attempts)} of attempts)"
    )
    yield (
        f"Starts    {report.attempts:,}, of which {report.retries:,} retries, in "
        f"{report.workers:,} slots: {_per_s(report.starts_per_s)} starts a second, "
        f"{_per_s(report.succeeded_per_s)} successes"
    )
    yield (
        f"Makespan  {_time(report.makespan_ns)}; no schedule takes less than "
        f"{_time(report.bound.ns)} ({report.bound.binding}): "
        f"efficiency {_percent(report.efficiency)}"
    )
    yield from _latency_lines(report)
    yield from _floor_lines(report.bound, report.makespan_ns)
    yield from _slot_lines(report.ledger)


def _latency_lines(report: BatchReport) -> Iterator[str]:
    yield ""
    yield f"Latency   {'':18}{'p50':>12}{'p95':>12}{'p99':>12}{'most':>12}"
    rows = {
        "queue wait": report.queue_wait,
        "  by the limiter": report.limiter_wait,
        "run time": report.run_time,
    }
    for name, row in rows.items():
        cells = [_time(ns) for ns in row] if row else ["-"] * 4
        yield f"          {name:18}{''.join(f'{cell:>12}' for cell in cells)}"


def _floor_lines(least: Bound, makespan_ns: int) -> Iterator[str]:
    yield ""
    head = "Floors"
    for floor, ns in least.floors.items():
        note = "  binds" if floor is least.binding else ""
        yield f"{head:10}{floor:18}{_time(ns):>12}  {_bar(ns, makespan_ns)}{note}".rstrip()
        head = ""
    yield f"{head:10}{'approximation':18}{_time(least.approximation_ns):>12}  (classic, no bound)"


def _slot_lines(ledger: IdleLedger) -> Iterator[str]:
    yield ""
    head = "Slots"
    for name, ns in (("running", ledger.running_ns), *ledger.causes.items()):
        share = _percent(ledger.share(ns))
        yield f"{head:10}{name:18}{share:>12}  {_bar(ns, ledger.total_ns)}".rstrip()
        head = ""


def _bar(part: int, whole: int) -> str:
    """Return a bar for ``part / whole``; it has at least one mark where there is anything."""
    return "#" * -(-BAR * part // whole) if whole else ""


def _percent(share: float | None) -> str:
    """Return a share for people; what is not all is never called 100 %."""
    if share is None:
        return "-"
    text = f"{100 * share:.1f} %"
    return "99.9 %" if text == "100.0 %" and share < 1 else text


def _per_s(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.1f}"


def _time(ns: int) -> str:
    """Return a time for people, with a unit that suits it."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:,.3f} {unit}"
    return f"{ns} ns"
