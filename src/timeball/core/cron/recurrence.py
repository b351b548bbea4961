"""`@rrule 2026-01-05T09:00 FREQ=MONTHLY;BYDAY=2MO`: RFC 5545 recurrences, of wall times.

python-dateutil evaluates them without zones, as the wall shows them; gaps and overlaps are then
resolved like those of any other schedule. It is loaded when the first such rule is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from math import prod
from typing import Final

from timeball.core.cron.parse import TEXT_LENGTH_MAX, shown
from timeball.errors import InvalidSchedule

RRULE: Final = "@rrule"
_WHOLE: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?) "
    r"(?:RRULE:)?([A-Z]+=[A-Z0-9,+-]+(?:;[A-Z]+=[A-Z0-9,+-]+)*);?",
    re.ASCII,
)
_INTERVAL_MAX: Final = 1_000
_COUNT_MAX: Final = 1_000_000
_TIMES_A_DAY_MAX: Final = 24
_REACH_YEARS: Final = 100
_FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")
_READ_AT_FIRST: Final = 64
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - what a wall shows has no zone
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The wall times of a recurrence rule, for at most a hundred years from its beginning.

    Two are equal when their texts are.
    """

    text: str
    unit_s: int = field(compare=False)
    _all: Callable[[], Iterable[datetime]] = field(compare=False, repr=False)
    # The first so many of them; a longer row replaces it, so that threads may share a rule
    _known: list[tuple[int, ...]] = field(compare=False, repr=False, default_factory=lambda: [()])

    def canonical(self) -> str:
        """Return the rule as text."""
        return f"{RRULE} {self.text}"

    def prose(self) -> str:
        """Return the rule in words."""
        begin, rule = self.text.split()
        return f"by the recurrence {rule}, from {begin.replace('T', ' ').removesuffix(':00')}"

    def first(self, wall: int) -> int | None:
        """Return the first such wall time not before `wall`, or None."""
        walls = self._beyond(wall)
        at = bisect_left(walls, wall)
        return walls[at] if at < len(walls) else None

    def last(self, wall: int) -> int | None:
        """Return the last such wall time not after `wall`, or None."""
        walls = self._beyond(wall)
        at = bisect_right(walls, wall)
        return walls[at - 1] if at else None

    def _beyond(self, wall: int) -> tuple[int, ...]:
        """Return wall times from the beginning to one after `wall`, or all there are."""
        walls, size = self._known[0], _READ_AT_FIRST
        while not walls or walls[-1] <= wall:
            size = max(size, 2 * len(walls))
            more = tuple((each - _EPOCH) // _SECOND for each in islice(self._all(), size))
            if len(more) == len(walls):
                break
            walls = self._known[0] = more
        return walls


def parse_recurrence(text: str) -> Recurrence:
    """Return what `@rrule BEGIN RULE` means: BEGIN a wall time, RULE as in RFC 5545.

    Raises:
        InvalidSchedule: The text is no such rule, one that never comes due, or the optional
            dependency is not installed.
    """
    words = " ".join(text[:TEXT_LENGTH_MAX].upper().split()[1:])
    found = _WHOLE.fullmatch(words)
    if found is None:
        raise _wrong(text, "is not understood")
    parts = dict(part.split("=", 1) for part in found[2].split(";"))
    _check(text, parts)
    begin = _moment(text, found[1])
    count = int(parts.pop("COUNT", _COUNT_MAX))
    until = parts.pop("UNTIL", "99991231")
    until += "T235959"[len(until) - 8 :]
    last = min(until, f"{begin.year + _REACH_YEARS:04}{begin:%m%dT%H%M%S}")
    rule = ";".join(f"{key}={value}" for key, value in {**parts, "UNTIL": last}.items())

    def walls() -> Iterator[datetime]:
        return islice(_bounded(text, rule, begin), count)

    if next(walls(), None) is None:
        raise _wrong(text, "never comes due")
    unit_s = 1 if begin.second or "BYSECOND" in parts else 60
    return Recurrence(f"{begin.isoformat()} {found[2]}", unit_s, walls)


def _check(text: str, parts: dict[str, str]) -> None:
    if parts.get("FREQ") not in _FREQUENCIES:
        raise _wrong(text, f"has a FREQ other than {', '.join(_FREQUENCIES)}")
    for key, most in (("INTERVAL", _INTERVAL_MAX), ("COUNT", _COUNT_MAX)):
        value = parts.get(key, "1")
        if not value.isdigit() or not 1 <= int(value) <= most:
            raise _wrong(text, f"has {key} outside 1 to {most:,}")
    if "COUNT" in parts and "UNTIL" in parts:
        raise _wrong(text, "has both COUNT and UNTIL")
    if not re.fullmatch(r"\d{8}(?:T\d{6})?", parts.get("UNTIL", "20260101"), re.ASCII):
        raise _wrong(text, "has an UNTIL other than 20261231 or 20261231T235959, by the wall clock")
    times = (parts.get(key, "").count(",") + 1 for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if prod(times) > _TIMES_A_DAY_MAX:
        raise _wrong(text, f"has more than {_TIMES_A_DAY_MAX} times of day; a cron expression may")


def _moment(text: str, begin: str) -> datetime:
    try:
        moment = datetime.fromisoformat(begin)
    except ValueError:
        raise _wrong(text, "begins on a date that does not exist") from None
    if not _EPOCH.year <= moment.year < _EPOCH.year + 10 * _REACH_YEARS:
        raise _wrong(text, "begins before 1970 or after 2969")
    return moment


def _bounded(text: str, rule: str, begin: datetime) -> Iterator[datetime]:
    try:
        from timeball.core.cron.dateutil_rule import bounded
    except ModuleNotFoundError:
        raise InvalidSchedule(
            f"{shown(text)} needs python-dateutil; install it with pip install 'timeball[rrule]'"
        ) from None
    try:
        return bounded(rule, begin)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise _wrong(text, f"is refused: {error}") from None


def _wrong(text: str, why: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"{shown(text)} {why}; write a beginning as the wall shows it and a rule of RFC 5545, such "
        "as '@rrule 2026-01-05T09:00 FREQ=MONTHLY;BYDAY=2MO'"
    )
