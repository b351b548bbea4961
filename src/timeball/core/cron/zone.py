"""A time zone as stretches of constant offset, in whole seconds, to the end of 2999.

Decodes the TZif format (RFC 9636) from bytes, the POSIX rule at its end included. Who
reads the bytes is `zonedata`. `zoneinfo` answers offset questions but lists no transitions;
probing for them can miss two that lie close together, so the file is decoded here.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from timeball.errors import InvalidSchedule

DAY_S = 86_400
BEGINNING = -(2**62)
_RULE_YEARS = (1900, 3000)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_HEADER = struct.Struct(">4sc15x6l")
_ABBREVIATION = r"(?:<[^>]+>|[A-Za-z]+)"
_CLOCK = r"[+-]?\d+(?::\d+){0,2}"
_RULE = rf"([JM]?[\d.]+)(?:/({_CLOCK}))?"
_TAIL = re.compile(
    rf"{_ABBREVIATION}({_CLOCK})(?:{_ABBREVIATION}({_CLOCK})?,{_RULE},{_RULE})?", re.ASCII
)


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A zone: from `starts[i]` (epoch seconds) until the next start, UTC plus `offsets[i]`.

    Neighbouring stretches differ in offset, so every start but the first is a transition:
    a gap where the offset grows, an overlap where it shrinks.
    """

    name: str
    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    alias_of: str | None = None
    version: str = ""

    def index(self, instant: int) -> int:
        """Return the number of the stretch that contains `instant`."""
        return bisect_right(self.starts, instant) - 1

    def offset(self, instant: int) -> int:
        """Return the seconds to add to UTC at `instant`."""
        return self.offsets[bisect_right(self.starts, instant) - 1]

    def fold(self, instant: int) -> int:
        """Return 1 where the wall clock shows a time that it has already shown, else 0."""
        i = self.index(instant)
        return int(i > 0 and instant < self.starts[i] + self.offsets[i - 1] - self.offsets[i])

    def fingerprint(self, since: int, until: int) -> str:
        """Return a short text that changes when the offsets between two instants do."""
        first, last = self.index(since), self.index(until)
        facts = (self.offsets[first : last + 1], self.starts[first + 1 : last + 1])
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def decode(name: str, data: bytes, *, alias_of: str | None = None, version: str = "") -> Zone:
    """Return the zone that the bytes of a TZif file describe.

    Raises:
        InvalidSchedule: The bytes are no TZif file of version 2 or later.
    """
    try:
        times, types, offsets, tail = _block(data)
    except (struct.error, IndexError, ValueError):
        raise InvalidSchedule(
            f"time zone {name!r}: its data cannot be read; reinstall the tzdata package"
        ) from None
    changes = [(BEGINNING, offsets[0])]
    changes += [(at, offsets[kind]) for at, kind in zip(times, types, strict=True)]
    changes += _tail(tail, times[-1] if times else None)
    starts, kept = _merged(changes)
    return Zone(name, starts, kept, alias_of, version)


def _block(data: bytes) -> tuple[tuple[int, ...], bytes, list[int], str]:
    """Return transition times, their types, the types' offsets and the rule for later years."""
    begin = _HEADER.size + _sizes(data, 0, 4)[0]
    skipped, timecnt, typecnt = _sizes(data, begin, 8)
    begin += _HEADER.size
    times = struct.unpack_from(f">{timecnt}q", data, begin)
    types = data[begin + 8 * timecnt : begin + 9 * timecnt]
    kinds = struct.iter_unpack(">lBB", data[begin + 9 * timecnt :][: 6 * typecnt])
    return times, types, [kind[0] for kind in kinds], data[begin + skipped :].decode().strip("\n")


def _sizes(data: bytes, begin: int, word: int) -> tuple[int, int, int]:
    """Return the length of a block and how many transitions and types it has."""
    magic, version, *counts = _HEADER.unpack_from(data, begin)
    if magic != b"TZif" or version < b"2":
        raise ValueError(magic, version)
    isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt = counts
    length = timecnt * (word + 1) + typecnt * 6 + charcnt + leapcnt * (word + 4)
    return length + isstdcnt + isutcnt, timecnt, typecnt


def _merged(changes: list[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Drop changes that leave the offset as it was; of two at one instant the later stands."""
    starts: list[int] = []
    offsets: list[int] = []
    for at, offset in changes:
        if starts and starts[-1] == at:
            starts.pop()
            offsets.pop()
        if not offsets or offsets[-1] != offset:
            starts.append(at)
            offsets.append(offset)
    return tuple(starts), tuple(offsets)


def _tail(text: str, last: int | None) -> Iterator[tuple[int, int]]:
    """Yield the changes that a POSIX rule such as `EST5EDT,M3.2.0,M11.1.0` makes after `last`."""
    found = _TAIL.fullmatch(text)
    if found is None:
        return
    standard, summer, begin, begin_at, end, end_at = found.groups()
    base = -_seconds(standard)
    if begin is None:
        if last is not None:
            yield last + 1, base
        return
    other = -_seconds(summer) if summer else base + 3600
    begin_year, end_year = _RULE_YEARS
    if last is not None:  # a year too early does no harm: what is not after `last` is dropped
        begin_year = max(begin_year, 1969 + last // (366 * DAY_S))
    for year in range(begin_year, end_year + 1):
        pair = [
            (_day(begin, year) * DAY_S + _seconds(begin_at or "2") - base, other),
            (_day(end, year) * DAY_S + _seconds(end_at or "2") - other, base),
        ]
        yield from (change for change in sorted(pair) if last is None or change[0] > last)


def _day(rule: str, year: int) -> int:
    """Return the day, counted from 1970-01-01, on which a rule of a POSIX zone falls."""
    if rule.startswith("M"):
        month, week, weekday = map(int, rule[1:].split("."))
        begin, end = _date(year, month), _date(year + month // 12, month % 12 + 1)
        day = begin + (weekday - begin - 4) % 7 + 7 * (week - 1)  # 1970-01-01 was a Thursday
        return day if day < end else day - 7  # week 5 means the last one
    number = int(rule.removeprefix("J"))
    if not rule.startswith("J"):
        return _date(year, 1) + number  # counts from 0, and counts 29 February
    # counts from 1 and never counts 29 February, so day 60 is always 1 March
    march_1 = 60
    return _date(year, 3) + number - march_1 if number >= march_1 else _date(year, 1) + number - 1


def _date(year: int, month: int) -> int:
    """Return the first day of a month, counted from 1970-01-01."""
    return date(year, month, 1).toordinal() - _EPOCH_ORDINAL


def _seconds(clock: str) -> int:
    """Return the signed seconds of `h[:mm[:ss]]`."""
    hours, minutes, seconds = [*map(int, clock.lstrip("+-").split(":")), 0, 0][:3]
    total = hours * 3600 + minutes * 60 + seconds
    return -total if clock.startswith("-") else total
