"""Which of the occurrences that have come due still run, and what their jobs are told.

Pure and bounded: however long nobody looked, one call decides at most `BOUND`
occurrences, oldest first, and looks at few more. The cursor then stands at the last
decided one, and the next call goes on from there. Nothing is remembered between two
calls: a verdict depends on the instant, the clock and what else is due, so whoever
comes next, on whatever machine, decides the rest as the first one would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from timeball.core.cron import Occurrence
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
    """The first one not decided. It may be due already."""


def plan(
    schedule: Schedule,
    occurrences: Iterable[datetime],
    now: datetime,
    *,
    describe: Callable[[datetime], Occurrence],
    rule: MisfireRule | None = None,
    bound: int = BOUND,
) -> Plan:
    """Return exactly one decision for each of the first `bound` occurrences that are due.

    Args:
        schedule: Says which of them are to run, and what with.
        occurrences: Those after its cursor, strictly increasing; may go on for ever.
        now: The store's clock.
        describe: Tells an occurrence in full.
        rule: How far back to go; None for the defaults.
        bound: At most so many decisions.

    Raises:
        UsageError: The schedule's catch-up or arguments are of no use.
    """
    rule = rule or MisfireRule()
    catchup = _catchup(schedule.spec.catchup)
    # What comes after the bound is looked at as far as a verdict may depend on it.
    due, next_at = _due(islice(occurrences, bound + max(rule.limit, 1)), now)
    decided = due[:bound]
    args = _Args(decode_args(schedule.spec.args), schedule.spec.name, describe)
    decisions: list[OccurrenceDecision] = []
    for number, at in enumerate(decided):
        reason = _reason(catchup, rule, now - at, followers=len(due) - number - 1)
        decisions.append(args.skipped(at, reason) if reason else args.fired(at, now - at, rule))
    cursor = decided[-1] if decided else schedule.cursor
    return Plan(decisions, cursor, due[bound] if due[bound:] else next_at)


def _due(occurrences: Iterable[datetime], now: datetime) -> tuple[list[datetime], datetime | None]:
    """Return those that are due, and the first that is not; no other is asked for."""
    due: list[datetime] = []
    for at in occurrences:
        if at > now:
            return due, at
        due.append(at)
    return due, None


def _catchup(name: str) -> Catchup:
    try:
        return Catchup(name)
    except ValueError:
        raise UsageError(f"catchup {name!r}: write one of {', '.join(Catchup)}") from None


def _reason(
    catchup: Catchup, rule: MisfireRule, lateness: timedelta, *, followers: int
) -> str | None:
    """Return why an occurrence does not run, or None where it does.

    `followers` is how many due ones come after it, counted as far as they were looked at:
    for one that is decided, that is at least `limit` of them if there are so many.
    """
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

    def skipped(self, at: datetime, reason: str) -> OccurrenceDecision:
        self._missed += 1
        return OccurrenceDecision(at, Decision.SKIPPED, reason, "{}")

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
