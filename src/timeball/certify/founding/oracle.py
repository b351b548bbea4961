"""When a schedule must fire, by brute force: every minute is looked at, by none of our code.

Offsets come from the standard library's `zoneinfo` over the `tzdata` package.
"""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

_MINUTE: Final = timedelta(minutes=1)
_REACH: Final = timedelta(hours=26)  # the widest jump that there was is a day
_ENDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_SUNDAY: Final = 7


class Wanted(NamedTuple):
    """A schedule in plain words: numbers, lists, steps and stars in five fields."""

    cron: str
    tz: str
    gap: str
    overlap: str


@cache
def zone(name: str) -> ZoneInfo:
    """Return a zone as the `tzdata` package has it, whatever this machine has."""
    path = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    return ZoneInfo.from_file(io.BytesIO(path.read_bytes()), key=name)


def fires(wanted: Wanted, begin: datetime, end: datetime) -> list[datetime]:
    """Return the instants in (begin, end] at which a schedule fires."""
    shown = _shown(wanted.tz, begin - _REACH, end + _REACH)
    passes: dict[datetime, list[datetime]] = {}
    for at, wall in shown:
        passes.setdefault(wall, []).append(at)
    found: set[datetime] = set()
    for wall, instants in passes.items():
        if _names(wanted.cron, wall):
            kept = {"first": instants[:1], "second": instants[-1:]}.get(wanted.overlap, instants)
            found.update(kept)
    for (at, wall), (later, next_wall) in pairwise(shown):
        for minute in range(1, (next_wall - wall) // _MINUTE):
            if wanted.gap != "skip" and _names(wanted.cron, wall + minute * _MINUTE):
                moved = {"next_valid": later, "prev_valid": at}
                found.add(moved.get(wanted.gap, at + minute * _MINUTE))
    return sorted(at for at in found if begin < at <= end)


def jumps(tz: str, begin: datetime, end: datetime) -> int:
    """Return how often the wall clock jumps between two instants."""
    walls = _shown(tz, begin, end)
    return sum(later - wall != _MINUTE for (_, wall), (_, later) in pairwise(walls))


@cache
def _shown(tz: str, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return each minute with what the wall clock shows then."""
    there, at, shown = zone(tz), begin, []
    while at <= end:
        shown.append((at, at.astimezone(there).replace(tzinfo=None, fold=0)))
        at += _MINUTE
    return shown


def _names(cron: str, wall: datetime) -> bool:
    """Return whether an expression names a wall time; days by one of the two fields only."""
    minutes, hours, days, months, weekdays = _sets(cron)
    weekday = wall.isoweekday()
    return (
        wall.minute in minutes
        and wall.hour in hours
        and wall.day in days
        and wall.month in months
        and (weekday in weekdays or (weekday == _SUNDAY and 0 in weekdays))
    )


@cache
def _sets(cron: str) -> tuple[frozenset[int], ...]:
    fields = zip(cron.split(), _ENDS, strict=True)
    return tuple(_set(text, first, last) for text, (first, last) in fields)


def _set(text: str, first: int, last: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        if part.startswith("*"):
            step = int(part.removeprefix("*").removeprefix("/") or 1)
            found.update(range(first, last + 1, step))
        else:
            found.add(int(part))
    return frozenset(found)
