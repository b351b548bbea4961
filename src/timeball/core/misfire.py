"""Which of the occurrences that have come due still run, and what their jobs are told.

The reasons of those that do not: "excluded" and "gap" are the schedule's own meaning; "window",
"limit", "superseded" and "missed" the rule for what was missed; "paused" that it was. "overlap",
that the run before was still going, is for the store to find when it adds the job.

Pure and bounded: however long nobody looked, one call decides at most `BOUND`
occurrences, oldest first, and looks at few more. The cursor then stands at the last
decided one, and the next call goes on from there. Nothing is remembered between two
calls: a verdict depends on the instant, the clock and what else is due, so whoever
comes next, on whatever machine, decides the rest as the first one would have. How many
runs there have been, and whether that is enough (`max_runs`), only the store knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple, Protocol

from timeball.core.cron import Due, Occurrence
from timeball.core.payload import decode_args, encode_args
from timeball.core.records import Decision, OccurrenceDecision, Schedule
from timeball.errors import UsageError

BOUND: Final = 1_000
"""Occurrences decided by one call."""

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

    def occurrences(self, after: datetime, /) -> Iterator[Due]:
        """Yield every occurrence after an instant, in order."""

    def runs(self, after: datetime, /) -> Iterator[Due]:
        """Yield those of them that may run; however many lie between two, it takes no longer."""

    def describe(self, instant: datetime, /) -> Occurrence:
        """Tell one of them in full."""


def plan(
    schedule: Schedule,
    agenda: Occurrences,
    now: datetime,
    *,
    rule: MisfireRule | None = None,
    bound: int = BOUND,
) -> Plan:
    """Return exactly one decision for each of the first `bound` occurrences that are due.

    Args:
        schedule: Says which of them are to run, and what with.
        agenda: Its occurrences; those after its cursor are looked at.
        now: The store's clock.
        rule: How far back to go; None for the defaults.
        bound: At most so many decisions.

    Raises:
        UsageError: The schedule's catch-up or arguments are of no use.
    """
    rule = rule or MisfireRule()
    catchup = _catchup(schedule.spec.catchup)
    due, following = _due(agenda, schedule.cursor, now, bound)
    followers = 0
    if following and following.due_at <= now:
        # What comes after the bound is looked at as far as a verdict may depend on it.
        later = takewhile(lambda each: each.due_at <= now, agenda.runs(due[-1].at))
        followers = sum(1 for _ in islice(later, rule.limit if catchup is Catchup.ALL else 1))
    reasons = _reasons(catchup, rule, due, now, followers=followers)
    args = _Args(decode_args(schedule.spec.args), schedule.spec.name, agenda.describe)
    decisions = [
        args.skipped(each, reason) if reason else args.fired(each.at, now - each.due_at, rule)
        for each, reason in zip(due, reasons, strict=True)
    ]
    return _planned(schedule, decisions, following)


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
    due, following = _due(agenda, schedule.cursor, now, bound)
    decisions = [
        OccurrenceDecision(each.at, Decision.SKIPPED, each.reason or "paused", "{}") for each in due
    ]
    return _planned(schedule, decisions, following)


def _due(
    agenda: Occurrences, cursor: datetime, now: datetime, bound: int
) -> tuple[list[Due], Due | None]:
    """Return the first that are due, and the one after them; no others are asked for."""
    due: list[Due] = []
    for each in agenda.occurrences(cursor):
        if each.due_at > now or len(due) == bound:
            return due, each
        due.append(each)
    return due, None


def _planned(
    schedule: Schedule, decisions: list[OccurrenceDecision], following: Due | None
) -> Plan:
    cursor = decisions[-1].nominal_at if decisions else schedule.cursor
    return Plan(decisions, cursor, following and following.at, following and following.due_at)


def _catchup(name: str) -> Catchup:
    try:
        return Catchup(name)
    except ValueError:
        raise UsageError(f"catchup {name!r}: write one of {', '.join(Catchup)}") from None


def _reasons(
    catchup: Catchup, rule: MisfireRule, due: list[Due], now: datetime, *, followers: int
) -> list[str | None]:
    """Return for each why it does not run, or None where it does.

    Args:
        catchup: Which of them run.
        rule: How far back to go.
        due: The occurrences, in order.
        now: The store's clock.
        followers: How many more after them are due and may run, counted as far as it matters.
    """
    reasons: list[str | None] = []
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
