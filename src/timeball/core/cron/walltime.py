"""When the clock on the wall shows what an expression names, time zones left out.

Wall time is an integer: seconds since 1970-01-01 00:00 on that wall. The Gregorian calendar
repeats every 400 years, weekdays included, so one table of 4,800 months answers for ever.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import chain

from timeball.core.cron.fields import LAST, Cron, Field, FromEnd, Nearest, Nth

DAY_S = 86_400
WEEK_S = 7 * DAY_S
FIRST_YEAR, LAST_YEAR = 1900, 2999
BEGINNING_S, END_S = (
    (date(year, 1, 1).toordinal() - date(1970, 1, 1).toordinal()) * DAY_S
    for year in (FIRST_YEAR, LAST_YEAR + 1)
)
_CYCLE_YEARS, _CYCLE_MONTHS, _CYCLE_DAYS = 400, 4800, 146_097
_QUICK_TIMES_MAX = 1_440
_TIMES_KEPT = 128
_NOWHERE_S = -(2**62)
_BASE_YEAR = 2000
_BASE_DAY = date(_BASE_YEAR, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
_SATURDAY, _SUNDAY = 6, 0
_WEEKLY = sum(1 << 7 * week for week in range(5))


def _months() -> tuple[array[int], bytes]:
    """Return for each month of a cycle its first day and its shape (length, first weekday)."""
    starts, shapes = array("l"), bytearray()
    begin, weekday = 0, date(_BASE_YEAR, 1, 1).isoweekday() % 7
    for number in range(_CYCLE_MONTHS):
        year, month = _BASE_YEAR + number // 12, number % 12 + 1
        after = date(year + month // 12, month % 12 + 1, 1)
        length = after.toordinal() - date(year, month, 1).toordinal()
        starts.append(begin)
        shapes.append((length - 28) * 7 + weekday)
        begin, weekday = begin + length, (weekday + length) % 7
    return starts, bytes(shapes)


_STARTS, _SHAPES = _months()
_SHAPES_OF_MONTH = tuple(frozenset(_SHAPES[month::12]) for month in range(12))
_FIRST_MONTH = (FIRST_YEAR - _BASE_YEAR) * 12
_LAST_MONTH = (LAST_YEAR - _BASE_YEAR) * 12 + 11


class Days:
    """The days an expression names, counted from 1970-01-01; all within 1900 to 2999."""

    __slots__ = ("_cron", "_masks", "_months", "_near", "_years")

    def __init__(self, cron: Cron) -> None:
        self._cron = cron
        # bit d - 1 of a mask is day d; there are only 28 shapes of month, and few are looked at
        self._masks = [-1] * 28
        self._months = tuple(month in cron.month.values for month in range(1, 13))
        self._years = None if cron.year.everything else frozenset(cron.year.values)
        # The month that was looked at last: its number, first day, the day after it, days' bits
        self._near = (0, 0, 0, 0)

    def first(self, day: int) -> int | None:
        """Return the first such day not before `day`."""
        month, begin, end, bits = self._near
        if not begin <= day < end:
            month, begin, bits = self._look_at(_month_of(day))
        if ahead := bits >> (day - begin):
            return day + (ahead & -ahead).bit_length() - 1
        for later in range(max(month + 1, _FIRST_MONTH), _LAST_MONTH + 1):
            if self._months[later % 12] and self._bits(later):
                _, begin, bits = self._look_at(later)
                return begin + (bits & -bits).bit_length() - 1
        return None

    def _look_at(self, month: int) -> tuple[int, int, int]:
        """Return the month, its first day and its bits, and have them at hand for next time."""
        begin, bits = _start(month), self._bits(month)
        self._near = month, begin, _start(month + 1), bits
        return month, begin, bits

    def last(self, day: int) -> int | None:
        """Return the last such day not after `day`."""
        month = _month_of(day)
        behind = self._bits(month) & ((2 << (day - _start(month))) - 1)
        if behind:
            return _start(month) + behind.bit_length() - 1
        for earlier in range(min(month - 1, _LAST_MONTH), _FIRST_MONTH - 1, -1):
            if self._months[earlier % 12] and (bits := self._bits(earlier)):
                return _start(earlier) + bits.bit_length() - 1
        return None

    def _bits(self, month: int) -> int:
        if not self._months[month % 12] or not _FIRST_MONTH <= month <= _LAST_MONTH:
            return 0
        if self._years is not None and _BASE_YEAR + month // 12 not in self._years:
            return 0
        return self._mask(_SHAPES[month % _CYCLE_MONTHS])

    def _mask(self, shape: int) -> int:
        mask = self._masks[shape]
        if mask < 0:
            mask = self._masks[shape] = _mask(self._cron, 28 + shape // 7, shape % 7)
        return mask

    def none(self) -> bool:
        """Return whether there is no such day at all. Exact, since the calendar repeats."""
        if self._years is None:
            months = (month for month in range(12) if self._months[month])
            return not any(map(self._mask, chain(*(_SHAPES_OF_MONTH[m] for m in months))))
        firsts = ((year - _BASE_YEAR) * 12 for year in self._years)
        return not any(self._bits(first + month) for first in firsts for month in range(12))


class WallTimes:
    """The wall times an expression names."""

    __slots__ = ("_days", "_latest", "_times", "_today")

    def __init__(self, cron: Cron) -> None:
        self._days = Days(cron)
        self._times = _times(cron.hour.values, cron.minute.values, cron.second.values)
        self._latest = self._times[-1]
        # Where the day began that was found last, to be asked for its next time more often than not
        self._today = _NOWHERE_S

    def first(self, wall: int) -> int | None:
        """Return the first such wall time not before `wall`; None after 2999."""
        today = self._today
        if 0 <= wall - today <= self._latest:
            return today + self._times[bisect_left(self._times, wall - today)]
        day, rest = divmod(wall, DAY_S)
        times = self._times
        at = bisect_left(times, rest)
        if at == len(times):
            day, at = day + 1, 0
        found = self._days.first(day)
        if found is None:
            return None
        self._today = found * DAY_S
        return found * DAY_S + (times[at] if found == day else times[0])

    def last(self, wall: int) -> int | None:
        """Return the last such wall time not after `wall`; None before 1900."""
        day, rest = divmod(wall, DAY_S)
        times = self._times
        at = bisect_right(times, rest) - 1
        if at < 0:
            day -= 1
        found = self._days.last(day)
        if found is None:
            return None
        return found * DAY_S + (times[at] if found == day else times[-1])


@lru_cache(_TIMES_KEPT)
def _times(
    hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]
) -> Sequence[int]:
    """Return the times of a day, in seconds; many schedules share them."""
    times = ((h * 60 + m) * 60 + s for h in hours for m in minutes for s in seconds)
    # A tuple is faster and five times as large: too much for every second of a day
    many = len(hours) * len(minutes) * len(seconds) > _QUICK_TIMES_MAX
    return array("l", times) if many else tuple(times)


def never(cron: Cron) -> bool:
    """Return whether no day of any year fits."""
    return Days(cron).none()


def _month_of(day: int) -> int:
    """Return the month of a day, counted from January 2000."""
    cycle, rest = divmod(day - _BASE_DAY, _CYCLE_DAYS)
    return cycle * _CYCLE_MONTHS + bisect_right(_STARTS, rest) - 1


def _start(month: int) -> int:
    """Return the first day of a month."""
    cycle, rest = divmod(month, _CYCLE_MONTHS)
    return _BASE_DAY + cycle * _CYCLE_DAYS + _STARTS[rest]


def _mask(cron: Cron, length: int, first: int) -> int:
    """Return the days that both day fields allow together in a month of that shape."""
    days = _day_bits(cron.day, length, first)
    weekdays = _weekday_bits(cron.weekday, length, first)
    return days & weekdays if cron.both_days else days | weekdays


def _day_bits(field: Field, length: int, first: int) -> int:
    bits = 0
    for value in field.values:
        bits |= 1 << value
    for item in field.items:
        match item:
            case FromEnd(back):
                bits |= 1 << max(length - back, 0)
            case Nearest(day):
                bits |= 1 << _nearest(length if day == LAST else day, length, first)
            case _:
                pass  # a span is among the values
    return bits >> 1 & ((1 << length) - 1)  # bit 0 was for days that do not exist


def _nearest(day: int, length: int, first: int) -> int:
    """Return the Monday to Friday nearest to a day, never leaving the month; 0 for no day."""
    if day > length:
        return 0
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def _weekday_bits(field: Field, length: int, first: int) -> int:
    bits = 0
    for item in field.items:
        if isinstance(item, Nth):
            begin = 1 + (item.weekday - first) % 7
            last = begin + (length - begin) // 7 * 7
            bits |= 1 << (last if item.nth == LAST else begin + 7 * (item.nth - 1))
    for weekday in field.values:
        bits |= _WEEKLY << 1 + (weekday - first) % 7
    return bits >> 1 & ((1 << length) - 1)
