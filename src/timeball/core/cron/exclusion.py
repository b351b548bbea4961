"""Times at which a schedule does not run: dates, cron expressions and calendars with a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from timeball.core.cron.expression import Walls
from timeball.core.cron.fields import HOUR, MINUTE, Cron
from timeball.core.cron.parse import parse, shown
from timeball.core.cron.walltime import DAY_S, WallTimes
from timeball.errors import InvalidSchedule

HOLIDAYS: Final = "holidays:"
Closed = Callable[[date], bool]
"""Says whether a calendar closes a day."""

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DATES: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:/(\d{4}-\d{2}-\d{2}))?", re.ASCII)
_PLACE: Final = re.compile(r"([A-Z]{2})(?:-([A-Za-z0-9]{1,16}))?|([A-Z]{3,6})", re.ASCII)
_RUN_DAYS_MAX: Final = 366


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What is excluded: whole days in four forms, and parts of days."""

    dates: frozenset[int]
    ranges: tuple[tuple[int, int], ...]
    calendars: tuple[Closed, ...]
    days: tuple[Walls, ...]
    parts: tuple[tuple[Walls, int], ...]
    """Wall times, and the seconds for which each of them counts."""

    def covers_day(self, day: int) -> bool:
        """Return whether a whole day is excluded, counted from 1970-01-01."""
        if day in self.dates or any(first <= day <= last for first, last in self.ranges):
            return True
        if any(walls.first(day * DAY_S) == day * DAY_S for walls in self.days):
            return True
        return bool(self.calendars) and self._closed(day)

    def ends(self, wall: int) -> int | None:
        """Return when what excludes a wall time ends, as far as one rule says; None for nothing."""
        for walls, unit in self.parts:
            begin = wall - wall % unit
            if walls.first(begin) == begin:
                return begin + unit
        return wall - wall % DAY_S + DAY_S if self.covers_day(wall // DAY_S) else None

    def _closed(self, day: int) -> bool:
        shown_day = date.fromordinal(day + _EPOCH_ORDINAL)
        return any(closed(shown_day) for closed in self.calendars)

    def __bool__(self) -> bool:
        return bool(self.dates or self.ranges or self.calendars or self.days or self.parts)


def read_exclusion(texts: Sequence[str], calendars: Mapping[str, Closed]) -> Exclusion:
    """Return what the texts exclude; see `Terms.exclude`.

    Raises:
        InvalidSchedule: A text is none of these, or names a calendar that is not known.
    """
    dates, ranges, names, days, parts = set(), [], [], [], []
    for text in texts:
        if found := _DATES.fullmatch(text):
            if found[2]:
                ranges.append(_range(text, found[1], found[2]))
            else:
                dates.add(_day(text, found[1]))
        elif " " in text or text.startswith("@"):
            cron = parse(text)
            walls = WallTimes(cron)
            if _whole_days(cron):
                days.append(walls)
            else:
                parts.append((walls, cron.unit_s))
        else:
            names.append(_calendar(text, calendars))
    return Exclusion(frozenset(dates), tuple(ranges), tuple(names), tuple(days), tuple(parts))


@dataclass(frozen=True, slots=True)
class Moved:
    """Wall times, those of excluded days moved to the same time of a day that is not."""

    walls: Walls
    exclusion: Exclusion
    forward: bool

    def first(self, wall: int) -> int | None:
        """Return the first such wall time not before `wall`."""
        day, rest = divmod(wall, DAY_S)
        while True:
            if self.exclusion.covers_day(day):
                day, rest = self._open_day(day, 1), 0
            here = self._times(day, rest, first=True)
            if here is not None:
                return here
            # A time of a day to come may be moved to one before it, but not to one before this
            later = self.walls.first((day + 1) * DAY_S)
            if later is None:
                return None
            day, rest = self._landing(max(later // DAY_S, day + 1), day), 0

    def last(self, wall: int) -> int | None:
        """Return the last such wall time not after `wall`."""
        day, rest = divmod(wall, DAY_S)
        while True:
            if self.exclusion.covers_day(day):
                day, rest = self._open_day(day, -1), DAY_S - 1
            here = self._times(day, rest, first=False)
            if here is not None:
                return here
            earlier = self.walls.last(day * DAY_S - 1)
            if earlier is None:
                return None
            day, rest = self._landing(min(earlier // DAY_S, day - 1), day), DAY_S - 1

    def _landing(self, day: int, asked: int) -> int:
        """Return where times of `day` are moved to; never back to the day that was asked."""
        if not self.exclusion.covers_day(day):
            return day
        step = 1 if self.forward else -1
        found = self._open_day(day, step)
        return found if (found - asked) * (day - asked) > 0 else self._open_day(day, -step)

    def _times(self, day: int, rest: int, *, first: bool) -> int | None:
        """Return the first time of a day from `rest` on, or the last one up to it."""
        found, ask = [], self.walls.first if first else self.walls.last
        base, step = day * DAY_S, -1 if self.forward else 1
        for _ in range(_RUN_DAYS_MAX):
            at = ask(day * DAY_S + rest)
            if at is not None and at // DAY_S == day:
                found.append(base + at % DAY_S)
            day += step
            if not self.exclusion.covers_day(day):
                break
        return (min if first else max)(found, default=None)

    def _open_day(self, day: int, step: int) -> int:
        for _ in range(_RUN_DAYS_MAX):
            if not self.exclusion.covers_day(day):
                return day
            day += step
        raise InvalidSchedule(
            "exclude leaves no day of a whole year to move an occurrence to; exclude less, or "
            "write on_excluded = skip"
        )


def _whole_days(cron: Cron) -> bool:
    return (
        len(cron.minute.values) == MINUTE.size
        and len(cron.hour.values) == HOUR.size
        and (cron.unit_s == MINUTE.size or len(cron.second.values) == MINUTE.size)
    )


def _range(text: str, first: str, last: str) -> tuple[int, int]:
    found = _day(text, first), _day(text, last)
    if found[1] < found[0]:
        raise InvalidSchedule(f"exclude {shown(text)} ends before it begins; exchange the dates")
    return found


def _day(text: str, day: str) -> int:
    try:
        return date.fromisoformat(day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise InvalidSchedule(
            f"exclude {shown(text)} holds a date that does not exist; write 2026-12-25"
        ) from None


def _calendar(text: str, calendars: Mapping[str, Closed]) -> Closed:
    if text in calendars:
        return calendars[text]
    if text.startswith(HOLIDAYS):
        return _holidays(text.removeprefix(HOLIDAYS))
    known = f" (known here: {', '.join(sorted(calendars))})" if calendars else ""
    raise InvalidSchedule(
        f"exclude {shown(text)} is no date, cron expression or calendar{known}; write "
        "'2026-12-25', '2026-12-24/2027-01-01', '* * 25 12 *' or 'holidays:DE-BY'"
    )


@lru_cache(256)
def _holidays(place: str) -> Closed:
    found = _PLACE.fullmatch(place)
    try:
        import holidays

        if found and found[3]:
            return holidays.financial_holidays(found[3]).__contains__
        if found:
            return holidays.country_holidays(found[1], subdiv=found[2]).__contains__
    except ModuleNotFoundError:
        raise InvalidSchedule(
            f"exclude 'holidays:{place}' needs the package holidays; install it with "
            "pip install 'timeball[holidays]'"
        ) from None
    except NotImplementedError as error:
        raise InvalidSchedule(f"exclude 'holidays:{place}': {error}") from None
    raise InvalidSchedule(
        f"exclude {shown(HOLIDAYS + place)} names no place; write a country and perhaps a part of "
        "it, such as holidays:DE-BY, or a market, such as holidays:XNYS"
    )
