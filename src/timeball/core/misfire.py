"""Which of the occurrences that have come due still run, and what their jobs are told.

The reasons of those that do not: "excluded" and "gap" are the schedule's own meaning; "window",
"limit", "superseded" and "missed" the rule for what was missed; "paused" that it was. "overlap",
that the run before was still going, is for the store to find when it adds the job.

Pure and bounded: however long nobody looked, one call decides at most `BOUND`
occurrences, oldest first, and looks at few more. The cursor then stands at the last
decided one, and the next call goes on from there. Nothing is remembered between two
calls: a verdict depends on the instant, the clock and what else is due, so whoever
comes next, on whatever machine, decides the rest as the first one would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from timeball.core.cron import Due, Occurrence
from timeball.core.payload import decode_args, encode_args
from timeball.core.records import Decision, OccurrenceDecision, Schedule
from timeball.errors import UsageError

BOUND: Final = 1_000
"""Occurrences decided by one call."""

_LOOKED_AT_MAX: Final = 20_000
"""Occurrences that are excluded, when one call looks ahead for one that may run."""

OCCURRENCE_ARG: Final = "__occurrence__"
"""The reserved argument that tells a job which occurrence it is."""


class Catchup(StrEnum):
    """Which of several due occurrences run."""

    LAST = "last"  # the latest one, for all of them
    NONE = "none"  # those that are hardly late
    ALL = "all"  # each of them


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfireRule:
    """How far back it is worth going."""

    window: timedelta = timedelta(days=1)
    """What is later than this never runs."""

    limit: int = 1_000
    """For `all`: how many of the latest run."""

    grace: timedelta = timedelta(seconds=60)
    """For `none`: what is later than this does not run. For all: later is a catch-up."""


class Plan(NamedTuple):
    """What is to be done about the occurrences of one schedule."""

    decisions: list[OccurrenceDecision]
    """One per occurrence, in their order; at most `BOUND`."""

    cursor: datetime
    """The last one decided; where there was none, the cursor as it was."""

    next_at: datetime | None
    """The first one not decided, None at the end of the schedule. It may be due already."""

    due_at: datetime | None
    """When that one falls due: `next_at`, later by its jitter."""


class Occurrences(Protocol):
    """What is asked of a schedule's meaning; an `Agenda` answers."""

    @property
    def max_runs(self) -> int | None:
        """After how many runs the schedule ends."""

    def occurrences(self, after: datetime, /) -> Iterator[Due]:
        """Yield every occurrence after an instant, in order."""

    def describe(self, instant: datetime, /) -> Occurrence:
        """Tell one of them in full."""


def plan(
    schedule: Schedule,
    agenda: Occurrences,
    now: datetime,
    *,
    rule: MisfireRule | None = None,
    runs: int = 0,
    bound: int = BOUND,
) -> Plan:
    """Return exactly one decision for each of the first `bound` occurrences that are due.

    Args:
        schedule: Says which of them are to run, and what with.
        agenda: Its occurrences; those after its cursor are looked at.
        now: The store's clock.
        rule: How far back to go; None for the defaults.
        runs: How often it has run; it ends at the agenda's `max_runs`.
        bound: At most so many decisions.

    Raises:
        UsageError: The schedule's catch-up or arguments are of no use.
    """
    rule = rule or MisfireRule()
    catchup = _catchup(schedule.spec.catchup)
    left = bound if agenda.max_runs is None else agenda.max_runs - runs
    if left <= 0:
        return Plan([], schedule.cursor, None, None)
    # What comes after the bound is looked at as far as a verdict may depend on it.
    ahead = agenda.occurrences(schedule.cursor)
    due, following = _due(ahead, now, bound=bound, enough=max(rule.limit, 1))
    reasons = _reasons(catchup, rule, due, now)
    args = _Args(decode_args(schedule.spec.args), schedule.spec.name, agenda.describe)
    decisions: list[OccurrenceDecision] = []
    for each, reason in islice(zip(due, reasons, strict=True), bound):
        if reason:
            decisions.append(args.skipped(each, reason))
            continue
        decisions.append(args.fired(each.at, now - each.due_at, rule))
        left -= 1
        if agenda.max_runs is not None and not left:
            return Plan(decisions, each.at, None, None)
    cursor = decisions[-1].nominal_at if decisions else schedule.cursor
    first = due[bound] if due[bound:] else following
    return Plan(decisions, cursor, first and first.at, first and first.due_at)


def backfill(
    schedule: Schedule, agenda: Occurrences, instants: Sequence[datetime]
) -> list[OccurrenceDecision]:
    """Return decisions by which each of some past occurrences runs, whatever the rule."""
    args = _Args(decode_args(schedule.spec.args), schedule.spec.name, agenda.describe)
    return [args.fired(at, timedelta.max, MisfireRule()) for at in instants]


def drop(schedule: Schedule, agenda: Occurrences, now: datetime, *, bound: int = BOUND) -> Plan:
    """Return for the first `bound` due occurrences of a paused schedule that none of them runs.

    They are "paused", but for those that would not have run anyway, which keep their reason.
    """
    ahead = islice(agenda.occurrences(schedule.cursor), bound + 1)
    due, following = _due(ahead, now, bound=bound, enough=1)
    decisions = [
        OccurrenceDecision(each.at, Decision.SKIPPED, each.reason or "paused", "{}")
        for each in due[:bound]
    ]
    cursor = decisions[-1].nominal_at if decisions else schedule.cursor
    first = due[bound] if due[bound:] else following
    return Plan(decisions, cursor, first and first.at, first and first.due_at)


def _due(
    occurrences: Iterator[Due], now: datetime, *, bound: int, enough: int
) -> tuple[list[Due], Due | None]:
    """Return those that are due, and the first that is not; few others are asked for.

    Of those after the bound, `enough` that may run, and no more than verdicts may depend on.
    """
    due: list[Due] = []
    for each in occurrences:
        if each.due_at > now:
            return due, each
        due.append(each)
        enough -= len(due) > bound and each.reason is None
        if not enough or len(due) == bound + _LOOKED_AT_MAX:
            return due, None
    return due, None


def _catchup(name: str) -> Catchup:
    try:
        return Catchup(name)
    except ValueError:
        raise UsageError(f"catchup {name!r}: write one of {', '.join(Catchup)}") from None


def _reasons(
    catchup: Catchup, rule: MisfireRule, due: list[Due], now: datetime
) -> list[str | None]:
    """Return for each why it does not run, or None where it does."""
    reasons: list[str | None] = []
    followers = 0  # those after it that may run, counted as far as they were looked at
    for each in reversed(due):
        late = now - each.due_at
        reasons.append(each.reason or _reason(catchup, rule, late, followers=followers))
        followers += each.reason is None
    return reasons[::-1]


def _reason(
    catchup: Catchup, rule: MisfireRule, lateness: timedelta, *, followers: int
) -> str | None:
    """Return why an occurrence that may run does not, or None where it does."""
    if catchup is Catchup.NONE:
        return "missed" if lateness > rule.grace else None
    if lateness > rule.window:
        return "window"
    if catchup is Catchup.LAST:
        return "superseded" if followers else None
    return "limit" if followers >= rule.limit else None


class _Args:
    """Makes decisions with the arguments of their jobs, and counts what has been skipped."""

    def __init__(
        self, given: dict[str, Any], schedule: str, describe: Callable[[datetime], Occurrence]
    ) -> None:
        self._given = given
        self._schedule = schedule
        self._describe = describe
        self._missed = 0

    def skipped(self, due: Due, reason: str) -> OccurrenceDecision:
        self._missed += due.reason is None  # what was not to run has not been missed
        return OccurrenceDecision(due.at, Decision.SKIPPED, reason, "{}")

    def fired(self, at: datetime, lateness: timedelta, rule: MisfireRule) -> OccurrenceDecision:
        occurrence = self._describe(at)
        told = {
            "schedule": self._schedule,
            "nominal_at": at.astimezone(UTC).isoformat(),
            "nominal_local": occurrence.local,
            "fold": occurrence.fold,
            "shifted": occurrence.shifted,
            "catchup": lateness > rule.grace or self._missed > 0,
            # Right before it, as far as this call goes back.
            "missed_count": self._missed,
        }
        self._missed = 0
        args = encode_args({**self._given, OCCURRENCE_ARG: told})
        return OccurrenceDecision(at, Decision.FIRED, None, args)
