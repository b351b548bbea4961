"""Whether what a store has on record keeps the contract. Pure, linear, one pass.

`audit` reads job histories as a stream, in the order of their ids, and keeps
figures, the edges of jobs that wait, and the first thousand violations only, so its
memory does not grow with the number of jobs that have ended. `audit_schedules` does
the same for occurrences. Tests, `timeball audit`, certify and the demo's last table
all call these two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Final, NamedTuple

from timeball.core.cycles import Waits
from timeball.core.history import (
    JobHistory,
    OccurrenceRecord,
    ScheduleRecord,
    Stray,
    went_plainly,
)
from timeball.core.invariants import GRAIN_S, INVARIANTS, Ledger, ledger
from timeball.core.records import BACKFILL, SKIP_REASONS, Decision
from timeball.core.states import FINAL_STATE, TERMINAL, State

VIOLATIONS_KEPT: Final = 1_000


class Violation(NamedTuple):
    """One thing that must not be."""

    invariant: str
    """Its name in the contract, such as "I3"."""

    subject: str
    """Whose record it is: "job 17", "schedule nightly", or "store"."""

    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit found, and what it looked at to find it."""

    jobs: int
    states: Mapping[State, int]
    """Jobs by state; a job in no state, or in two, is in none of these."""

    turns: int
    attempts: int
    """Turns known to have begun: those that have ended after it."""

    endings: int
    """Endings that were accepted."""

    stale: int
    """Settlements that were refused, as they should be."""

    lost: int
    """Once all is quiet: jobs that were accepted and are not in a terminal state."""

    twice: int
    """Jobs with a turn granted twice, or with two final endings."""

    found: Mapping[str, int]
    """Violations by invariant, all of them."""

    violations: tuple[Violation, ...]
    """The first thousand of them."""

    @property
    def clean(self) -> bool:
        """Return whether nothing was found."""
        return not self.found

    def including(self, violations: Iterable[Violation]) -> Report:
        """Return this report with what another pass found."""
        found, kept = Counter(self.found), list(self.violations)
        for violation in violations:
            _add(violation, found, kept)
        return replace(self, found=found, violations=tuple(kept))


def audit(
    histories: Iterable[JobHistory],
    *,
    quiesced: bool,
    accepted: int | None = None,
    deleted: int = 0,
    slack_s: float = GRAIN_S,
) -> Report:
    """Return what is wrong with the record of all jobs, and how much there is of it.

    Args:
        histories: One per job, in the order of their ids.
        quiesced: Whether all work should be done, so that every job must be terminal.
        accepted: How many jobs were submitted, by the client's own count.
        deleted: How many of them were deleted since, by the store's.
        slack_s: How far the store's clock is known to have been set back, in seconds.
    """
    tally, waits = _Tally(), Waits()
    for history in histories:
        if went_plainly(history):
            tally.take_plain(history)
        else:
            tally.take(ledger(history, slack_s), quiesced=quiesced)
            waits.take(history)
    for cycle in waits.cycles():
        tally.add("I15", f"job {cycle.jobs[0]}", str(cycle))
    if accepted is not None:
        tally.expect(accepted - deleted)
    return tally.report()


def violations_of(
    history: JobHistory, *, quiesced: bool = False, slack_s: float = GRAIN_S
) -> list[Violation]:
    """Return what is wrong with the record of one job."""
    return list(audit((history,), quiesced=quiesced, slack_s=slack_s).violations)


def _add(violation: Violation, found: Counter[str], kept: list[Violation]) -> None:
    found[violation.invariant] += 1
    if len(kept) < VIOLATIONS_KEPT:
        kept.append(violation)


@dataclass(slots=True)
class _Tally:
    """The figures of a report while it is being made."""

    jobs: int = 0
    states: Counter[State] = field(default_factory=Counter)
    turns: int = 0
    attempts: int = 0
    endings: int = 0
    stale: int = 0
    lost: int = 0
    twice: int = 0
    found: Counter[str] = field(default_factory=Counter)
    kept: list[Violation] = field(default_factory=list)
    newest: int | None = None

    def take(self, job: Ledger, *, quiesced: bool) -> None:
        history, states = job.history, job.states
        for invariant, check in INVARIANTS.items():
            for text in check(job):
                self.add(invariant, f"job {history.id}", text)
        self.follow(history)
        self.count(job)
        if quiesced and (len(states) != 1 or states[0] not in TERMINAL):
            self.lost += 1
            if len(states) == 1:  # else it is in I1 already
                text = f"is still {states[0]} in turn {job.last}, with all work done"
                self.add("I6", f"job {history.id}", text)

    def take_plain(self, history: JobHistory) -> None:
        """Take one that `went_plainly`, with which nothing can be wrong."""
        self.follow(history)
        self.jobs += 1
        self.turns += 1
        self.endings += 1
        self.attempts += history.endings[0].began_at is not None
        self.states[State.SUCCEEDED] += 1

    def follow(self, history: JobHistory) -> None:
        if self.newest is not None and history.id <= self.newest:
            text = f"follows job {self.newest}: on record twice, or read out of order"
            self.add("I1", f"job {history.id}", text)
        self.newest = history.id

    def count(self, job: Ledger) -> None:
        history = job.history
        if len(job.states) == 1:
            self.states[job.states[0]] += 1
        self.jobs += 1
        self.turns += len(job.known)
        self.endings += len(history.endings)
        self.stale += len(history.stale)
        final = 0
        for row in history.endings:
            self.attempts += row.began_at is not None
            final += row.ending in FINAL_STATE
        again = final - len(history.revivals) > 1
        self.twice += again or len(history.grants) > len(job.grants)

    def expect(self, accepted: int) -> None:
        if accepted != self.jobs:
            self.lost += max(0, accepted - self.jobs)
            text = f"{accepted} jobs should be on record, and {self.jobs} are"
            self.add("I1", "store", text)

    def add(self, invariant: str, subject: str, text: str) -> None:
        _add(Violation(invariant, subject, text), self.found, self.kept)

    def report(self) -> Report:
        return Report(
            jobs=self.jobs,
            states=dict(self.states),
            turns=self.turns,
            attempts=self.attempts,
            endings=self.endings,
            stale=self.stale,
            lost=self.lost,
            twice=self.twice,
            found=dict(self.found),
            violations=tuple(self.kept),
        )


def stray_violations(strays: Iterable[Stray]) -> Iterator[Violation]:
    """Yield what is on record of jobs that are not: I1."""
    for table, job_id, rows in strays:
        text = f"is not on record, yet has {rows} row{'s' * (rows != 1)} in {table}"
        yield Violation("I1", f"job {job_id}", text)


Expected = Callable[[ScheduleRecord], Iterable[datetime]]


def audit_schedules(
    schedules: Iterable[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]], expected: Expected
) -> Iterator[Violation]:
    """Yield what is wrong with the record of schedules: I16, I17 and I18.

    Args:
        schedules: Each schedule with everything decided for it.
        expected: Gives the occurrences that a schedule has after `activated_at`, in
            order; read up to its cursor only, so it may go on for ever.
    """
    owners: dict[int, tuple[str, datetime]] = {}
    for schedule, occurrences in schedules:
        subject = f"schedule {schedule.name}"
        decided: defaultdict[datetime, list[OccurrenceRecord]] = defaultdict(list)
        for row in occurrences:
            decided[row.nominal_at].append(row)
        for rows in decided.values():
            for invariant, text in (*_decisions(rows), *_owners(rows, subject, owners)):
                yield Violation(invariant, subject, text)
        for text in _coverage(schedule, decided, expected(schedule)):
            yield Violation("I17", subject, text)


def _decisions(rows: Sequence[OccurrenceRecord]) -> Iterator[tuple[str, str]]:
    jobs = [row.job_id for row in rows if row.decision is Decision.FIRED]
    nominal = rows[0].nominal_at.isoformat()
    if len(jobs) > 1:
        yield "I16", f"{nominal} was fired {len(jobs)} times, as jobs {jobs}"
    elif len(rows) > 1:
        whys = [f"{row.decision} ({row.reason or row.job_id})" for row in rows]
        yield "I17", f"{nominal} was decided {len(rows)} times: {', '.join(whys)}"
    for row in rows:
        yield from _fired(row) if row.decision is Decision.FIRED else _skipped(row)


def _fired(row: OccurrenceRecord) -> Iterator[tuple[str, str]]:
    nominal = row.nominal_at.isoformat()
    if row.job_id is None:
        yield "I17", f"{nominal} was fired without a job"
    if row.reason not in {None, BACKFILL}:
        yield "I17", f"{nominal} was fired, reason {row.reason!r}"
    if row.lateness_s < 0:
        yield "I18", f"{nominal} was fired {-row.lateness_s} s early"


def _skipped(row: OccurrenceRecord) -> Iterator[tuple[str, str]]:
    if row.job_id is not None or row.reason not in SKIP_REASONS:
        nominal = row.nominal_at.isoformat()
        yield "I17", f"{nominal} was skipped with job {row.job_id}, reason {row.reason!r}"


def _owners(
    rows: Sequence[OccurrenceRecord], subject: str, owners: dict[int, tuple[str, datetime]]
) -> Iterator[tuple[str, str]]:
    for row in rows:
        if row.decision is Decision.FIRED and row.job_id is not None:
            mine = subject, row.nominal_at
            owner, at = found = owners.setdefault(row.job_id, mine)
            if found != mine:
                others = f"{owner} at {at.isoformat()}"
                own = f"{subject} at {row.nominal_at.isoformat()}"
                yield "I16", f"job {row.job_id} is that of {own}, and of {others}"


def _coverage(
    schedule: ScheduleRecord,
    decided: Mapping[datetime, Sequence[OccurrenceRecord]],
    expected: Iterable[datetime],
) -> Iterator[str]:
    activated_at, cursor = schedule.activated_at, schedule.cursor
    upto = takewhile(lambda nominal_at: nominal_at <= cursor, expected)
    wanted = {nominal_at for nominal_at in upto if nominal_at > activated_at}
    for nominal_at in sorted(wanted.difference(decided)):
        yield f"{nominal_at.isoformat()} was never decided; the cursor is {cursor.isoformat()}"
    # What is older belongs to an earlier expression, or to earlier zone data.
    for nominal_at in sorted(each for each in decided if each > activated_at):
        if nominal_at <= cursor and nominal_at not in wanted:
            yield f"{nominal_at.isoformat()} was decided, but is no occurrence"
        elif nominal_at > cursor and decided[nominal_at][0].reason != BACKFILL:
            yield f"{nominal_at.isoformat()} was decided; the cursor is {cursor.isoformat()}"
