"""`@calendar every 2 weeks on mon,thu at 09:00 from 2026-01-05`: days counted from a date."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date
from typing import Final

from timeball.core.cron.parse import TEXT_LENGTH_MAX, shown
from timeball.core.cron.walltime import BEGINNING_S, DAY_S, END_S
from timeball.errors import InvalidSchedule

CALENDAR: Final = "@calendar"
PERIOD_MAX: Final = 3_660
TIMES_MAX: Final = 100
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MONDAY: Final = date(1970, 1, 5).toordinal() - _EPOCH_ORDINAL
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_RULE: Final = re.compile(
    r"every (?:([0-9]{1,4}) )?(days?|weeks?)(?: on ([a-z,]+))? at ([0-9:,]+)"
    r"(?: from ([0-9]{4}-[0-9]{2}-[0-9]{2}))?",
    re.ASCII,
)
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cycle:
    """Times of day on days that come round, nothing of it before a date.

    Days are counted from 1970-01-01 and weekdays from Monday; without weekdays the cycle is one
    of days, with some it is one of weeks that begin on Monday.
    """

    period: int
    weekdays: tuple[int, ...]
    times: tuple[int, ...]
    begins: int

    def canonical(self) -> str:
        """Return the rule as text, everything that may be left out written."""
        on = f" on {','.join(_WEEKDAYS[each] for each in self.weekdays)}" if self.weekdays else ""
        unit = ("week" if self.weekdays else "day") + "s" * (self.period > 1)
        period = f"{self.period} " if self.period > 1 else ""
        at = ",".join(map(_clock, self.times))
        return f"{CALENDAR} every {period}{unit}{on} at {at} from {self._from()}"

    def prose(self) -> str:
        """Return the rule in words."""
        return self.canonical().removeprefix(f"{CALENDAR} ").replace(",", ", ")

    @property
    def unit_s(self) -> int:
        """The seconds between two neighbouring times that the rule can tell apart."""
        return 1 if any(time % 60 for time in self.times) else 60

    def first(self, wall: int) -> int | None:
        """Return the first such wall time not before `wall`; None after 2999."""
        day, rest = divmod(max(wall, BEGINNING_S), DAY_S)
        at = bisect_left(self.times, rest)
        if at == len(self.times):
            day, at = day + 1, 0
        found = self._first_day(day)
        wall = found * DAY_S + (self.times[at] if found == day else self.times[0])
        return wall if wall < END_S else None

    def last(self, wall: int) -> int | None:
        """Return the last such wall time not after `wall`; None before the rule begins."""
        day, rest = divmod(min(wall, END_S - 1), DAY_S)
        at = bisect_right(self.times, rest) - 1
        if at < 0:
            day -= 1
        found = self._last_day(day)
        if found < self.begins:
            return None
        return found * DAY_S + (self.times[at] if found == day else self.times[-1])

    def _first_day(self, day: int) -> int:
        base, length, marks = self._cycle()
        rounds, rest = divmod(max(day, self.begins) - base, length)
        at = bisect_left(marks, rest)
        if at == len(marks):
            rounds, at = rounds + 1, 0
        return base + rounds * length + marks[at]

    def _last_day(self, day: int) -> int:
        base, length, marks = self._cycle()
        rounds, rest = divmod(day - base, length)
        at = bisect_right(marks, rest) - 1  # -1 is the last one, of the round before
        return base + (rounds if at >= 0 else rounds - 1) * length + marks[at]

    def _cycle(self) -> tuple[int, int, tuple[int, ...]]:
        """Return where cycles begin, how long one is and which of its days count."""
        if self.weekdays:
            return self.begins - (self.begins - _MONDAY) % 7, self.period * 7, self.weekdays
        return self.begins, self.period, (0,)

    def _from(self) -> date:
        return date.fromordinal(self.begins + _EPOCH_ORDINAL)


def parse_cycle(text: str) -> Cycle:
    """Return what `@calendar every [N] days|weeks [on DAYS] at TIMES [from DATE]` means.

    Raises:
        InvalidSchedule: The text is no such rule.
    """
    words = " ".join(text[:TEXT_LENGTH_MAX].lower().split()[1:])
    found = _RULE.fullmatch(words)
    if found is None:
        raise _wrong(text, "is not understood")
    every, unit, on, at, since = found.groups()
    period, weekly = int(every or 1), unit.startswith("week")
    if not 1 <= period <= PERIOD_MAX:
        raise _wrong(text, f"has a period outside 1 to {PERIOD_MAX}")
    if on and not weekly:
        raise _wrong(text, "names weekdays in a cycle of days")
    begins = _day(text, since) if since else _MONDAY
    weekdays = _weekdays(text, on) if on else ((begins - _MONDAY) % 7,)
    return Cycle(period, weekdays if weekly else (), _times(text, at), begins)


def _weekdays(text: str, names: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({_WEEKDAYS.index(name) for name in names.split(",")}))
    except ValueError:
        raise _wrong(text, f"has a weekday other than {', '.join(_WEEKDAYS)}") from None


def _times(text: str, clocks: str) -> tuple[int, ...]:
    found = [_CLOCK.fullmatch(clock) for clock in clocks.split(",")]
    parts = [[int(part or 0) for part in each.groups()] for each in found if each]
    if len(parts) < len(found) or len(parts) > TIMES_MAX:
        raise _wrong(text, "has a time that no clock shows, or too many")
    return tuple(
        sorted({hours * 3600 + minutes * 60 + seconds for hours, minutes, seconds in parts})
    )


def _day(text: str, since: str) -> int:
    try:
        day = date.fromisoformat(since).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise _wrong(text, "begins on a date that does not exist") from None
    if not BEGINNING_S <= day * DAY_S < END_S:
        raise _wrong(text, "begins outside the years 1900 to 2999")
    return day


def _clock(time: int) -> str:
    hours, rest = divmod(time, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


def _wrong(text: str, why: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"{shown(text)} {why}; write '@calendar every 10 days at 09:00 from 2026-01-05' or "
        "'@calendar every 2 weeks on mon,thu at 09:00,17:30 from 2026-01-05' (without from, "
        "weeks and days are counted from Monday, 1970-01-05)"
    )
