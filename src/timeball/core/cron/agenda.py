"""Everything a schedule means: its terms, its zone and its name, as a row of instants.

What falls due is each instant's own: none depends on the clock, on where the asking starts, or
on the machine that asks. Occurrences that do not run are told too, with the reason:

- "excluded": the wall shows a time that the terms exclude;
  (What is moved to another day is an occurrence of that day, and of no other.)
- "gap": the wall time does not exist and the policy is to skip it. Its instant is where it would
  be had the clock not jumped (02:30 in a gap from 02:00 to 03:00 is 03:30). Where that instant
  is an occurrence of its own, as it is for a schedule of every hour, nothing is left out of the
  rhythm and nothing more is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from timeball.core.cron.every import Every
from timeball.core.cron.exclusion import Closed, Exclusion, Moved, read_exclusion
from timeball.core.cron.expression import Expression, Walls, read
from timeball.core.cron.fields import Cron, spread
from timeball.core.cron.instants import Instants, epoch
from timeball.core.cron.occurrences import SEAM_S, Occurrence, RuleInstants, occurrence
from timeball.core.cron.policy import Dst, Gap, Overlap, Policy, keeps_to_the_wall, resolve
from timeball.core.cron.terms import OnExcluded, Terms
from timeball.core.cron.walltime import DAY_S, WallTimes
from timeball.core.cron.zone import Zone
from timeball.errors import InvalidSchedule

_NO_CALENDARS: Final[Mapping[str, Closed]] = MappingProxyType({})
_EXCLUDED_IN_A_ROW_MAX: Final = 100_000
Source = Every | RuleInstants


class Due(NamedTuple):
    """One occurrence, to be decided when `due_at` has come."""

    at: datetime
    """The nominal instant: its identity."""

    due_at: datetime
    """The same, later by the jitter."""

    reason: str | None = None
    """Why it does not run: "excluded" or "gap"; None where it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda(Instants):
    """The occurrences of a schedule. Asked by the methods of `Instants`, it names those that run.

    `Terms.max_runs` is not looked at: it counts what has run, which the store knows.
    """

    name: str
    terms: Terms
    zone: Zone
    policy: Policy
    expressions: tuple[Expression, ...]
    sources: tuple[Source, ...] = field(repr=False)
    exclusion: Exclusion = field(repr=False)

    def occurrences(self, after: datetime) -> Iterator[Due]:
        """Yield every occurrence after an instant, in order, those that do not run among them."""
        found = self._told(epoch(after) + 1)
        while found is not None:
            at, reason = found
            found = self._told(at + 1)
            delay_s = self._delay_s(at, found[0] if found else None)
            nominal_at = datetime.fromtimestamp(at, UTC)
            yield Due(nominal_at, nominal_at + timedelta(seconds=delay_s), reason)

    def runs(self, after: datetime) -> Iterator[Due]:
        """Yield the occurrences after an instant that run; those between take no time."""
        for nominal_at in self.following(after):
            yield Due(nominal_at, nominal_at + self.delay(nominal_at))

    def next_due(self, after: datetime) -> Due | None:
        """Return the first occurrence after an instant, whether or not it runs."""
        return next(self.occurrences(after), None)

    def delay(self, nominal_at: datetime) -> timedelta:
        """Return how much later than its instant an occurrence falls due.

        It is less than the distance to the next one, so that jitter exchanges no two of them.
        """
        at = epoch(nominal_at)
        following = self._told(at + 1) if self.terms.jitter_s else None
        return timedelta(seconds=self._delay_s(at, following[0] if following else None))

    def describe(self, instant: datetime) -> Occurrence:
        """Return what the wall clock shows at one of the instants, and whether a gap moved it."""
        at = epoch(instant)
        here = (source for source in self.sources if source.first(at) == at)
        # What a gap leaves out is in no source, and as shifted as what it moves
        shifted = all(isinstance(each, RuleInstants) and each.shifted(at) for each in here)
        return occurrence(self.zone, at, shifted=shifted)

    def wall(self, instant: datetime) -> datetime:
        """Return what the wall clock shows at an instant, without a zone."""
        at = epoch(instant)
        return datetime.fromtimestamp(at + self.zone.offset(at), UTC).replace(tzinfo=None)

    @property
    def fixed(self) -> bool:
        """Whether it keeps to times of the wall clock, and not to a rhythm in real time."""
        elapsed = any(isinstance(each, Every) for each in self.expressions)
        return not elapsed and keeps_to_the_wall(self.expressions, self.policy)

    def first(self, at: int) -> int | None:
        """Return the first instant not before `at` that runs, both in epoch seconds."""
        for _ in range(_EXCLUDED_IN_A_ROW_MAX):
            found = self._kept(at)
            end = None if found is None else self._excluded_until(found)
            if end is None:
                return found
            at = end
        raise self._all_excluded()

    def last(self, at: int) -> int | None:
        """Return the last instant not after `at` that runs, both in epoch seconds."""
        terms = self.terms
        if terms.end_at:
            at = min(at, epoch(terms.end_at))
        begin = _ceiling(terms.start_at) if terms.start_at else None
        for _ in range(_EXCLUDED_IN_A_ROW_MAX):
            found = max((f for s in self.sources if (f := s.last(at)) is not None), default=None)
            if found is None or (begin is not None and found < begin):
                return None
            if self._excluded_until(found) is None:
                return found
            at = found - 1
        raise self._all_excluded()

    def _told(self, at: int) -> tuple[int, str | None] | None:
        """Return the first occurrence not before `at`, and why it does not run if so."""
        found = self._kept(at)
        if self.policy.gap is Gap.SKIP:
            missing = self._missing(at, found)
            if missing is not None:
                return missing, "gap"
        if found is None:
            return None
        return found, "excluded" if self._excluded_until(found) else None

    def _kept(self, at: int) -> int | None:
        """Return the first instant not before `at` that any expression names."""
        terms = self.terms
        if terms.start_at:
            at = max(at, _ceiling(terms.start_at))
        found = min((f for s in self.sources if (f := s.first(at)) is not None), default=None)
        if found is None or (terms.end_at and found > epoch(terms.end_at)):
            return None
        return found

    def _missing(self, at: int, before: int | None) -> int | None:
        """Return the instant of the first wall time that a gap leaves out, before the next one."""
        terms = self.terms
        if terms.start_at:
            at = max(at, _ceiling(terms.start_at))
        if before is None:
            before = epoch(terms.end_at) + 1 if terms.end_at else at + DAY_S
        near = self.zone.starts[self.zone.index(before - 1)]
        if near + SEAM_S < at:
            return None  # no clock jumps there: nearly always
        shifting = (replace(s, gap=Gap.SHIFT) for s in self.sources if isinstance(s, RuleInstants))
        moved = (each.moved(at, before) for each in shifting)
        return min((each for each in moved if each is not None), default=None)

    def _excluded_until(self, at: int) -> int | None:
        """Return None for an instant that may run, else one before which none may."""
        if not self.exclusion:
            return None
        wall = at + self.zone.offset(at)
        wall_end = self.exclusion.ends(wall)
        if wall_end is None:
            return None
        end = at + wall_end - wall
        return end if self.zone.index(end) == self.zone.index(at) else at + 1

    def _delay_s(self, at: int, following: int | None) -> int:
        most = self.terms.jitter_s
        if following is not None:
            most = min(most, following - at - 1)
        return spread(self.name, str(at), most + 1) if most else 0

    def _all_excluded(self) -> InvalidSchedule:
        return InvalidSchedule(
            f"{self.terms.expression!r}: {_EXCLUDED_IN_A_ROW_MAX:,} occurrences in a row are "
            "excluded; exclude less"
        )


def agenda(
    terms: Terms,
    zone: Zone,
    policy: Policy | None = None,
    *,
    name: str,
    calendars: Mapping[str, Closed] = _NO_CALENDARS,
) -> Agenda:
    """Return the occurrences of a schedule.

    Args:
        terms: When it comes due.
        zone: Whose wall clock it goes by.
        policy: What it does where that clock jumps; None for what `resolve` finds.
        name: Its name, from which `H` and the jitter take their values.
        calendars: What the names in `Terms.exclude` mean; `holidays:…` is always known.

    Raises:
        InvalidSchedule: An expression or an exclusion is wrong, or needs what is not installed.
    """
    texts = (terms.expression, *terms.any_of)
    expressions = tuple(read(text, name=name, day_rule=terms.day_rule) for text in texts)
    exclusion = read_exclusion(terms.exclude, calendars)
    policy = policy or resolve(expressions)
    moving = terms.on_excluded is not OnExcluded.SKIP
    if moving and exclusion.parts:
        raise InvalidSchedule(
            "exclude names parts of days, from which nothing can be moved to another day; write "
            "whole days, such as '* * 25 12 *', or on_excluded = skip"
        )
    sources: list[Source] = []
    for expression in expressions:
        if isinstance(expression, Every):
            if moving:
                raise InvalidSchedule(
                    "@every has no time of day that could be moved to another day; write "
                    "on_excluded = skip"
                )
            sources.append(expression)
            continue
        walls: Walls = WallTimes(expression) if isinstance(expression, Cron) else expression
        if moving and exclusion:
            walls = Moved(walls, exclusion, forward=terms.on_excluded is OnExcluded.NEXT)
        sources.append(RuleInstants(walls, expression.unit_s, zone, policy.gap, policy.overlap))
    return Agenda(
        name=name,
        terms=terms,
        zone=zone,
        policy=policy,
        expressions=expressions,
        sources=tuple(sources),
        exclusion=exclusion,
    )


def settled(
    terms: Terms,
    dst: Dst | str = Dst.AUTO,
    *,
    gap: Gap | str | None = None,
    overlap: Overlap | str | None = None,
    name: str,
) -> tuple[Terms, Policy]:
    """Return the terms with every expression in its plainest text, and the policy they get.

    `H` stays `H`, so that the text is the one that was written and a new name picks anew.

    Raises:
        InvalidSchedule: A text is no expression, or `@every` stands beside times of the wall
            clock: where a government moves the clock, no one cursor keeps the place of both.
    """
    texts = (terms.expression, *terms.any_of)
    read_ones = [read(text, name=name, day_rule=terms.day_rule) for text in texts]
    expression, *any_of = (each.canonical() for each in read_ones)
    plain = replace(terms, expression=expression, any_of=tuple(any_of))
    policy = resolve(read_ones, dst, gap=gap, overlap=overlap)
    if any(isinstance(each, Every) for each in read_ones) and keeps_to_the_wall(read_ones, policy):
        raise InvalidSchedule(
            "any_of mixes @every, which goes by elapsed time, with times of the wall clock: "
            "declare @every as a schedule of its own"
        )
    return plain, policy


def _ceiling(instant: datetime) -> int:
    return epoch(instant) + (instant.microsecond > 0)
