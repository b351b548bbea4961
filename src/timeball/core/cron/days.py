"""The days of a zone: how long each is, and where a transition lies in them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from timeball.core.cron import Zone

HOUR_S: Final = 3_600
DAY_HOURS: Final = 24
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Seam(NamedTuple):
    """One transition of a zone: the instant at which its clock jumps, and how far."""

    at: datetime
    day: date
    """The local day that is longer or shorter for it."""

    before_s: int
    after_s: int
    """The offsets from UTC around it."""

    @property
    def jump_s(self) -> int:
        """How far the clock is put forward; negative where it is put back."""
        return self.after_s - self.before_s

    @property
    def is_gap(self) -> bool:
        """Whether wall times are missing; else they come twice."""
        return self.jump_s > 0


def seams(zone: Zone, since: datetime, until: datetime) -> list[Seam]:
    """Return the transitions of a zone after `since` and not after `until`, in order."""
    first, last = zone.index(_epoch(since)) + 1, zone.index(_epoch(until))
    return [_seam(zone, i) for i in range(first, last + 1)]


def next_seams(zone: Zone, after: datetime, count: int) -> list[Seam]:
    """Return the next transitions of a zone, at most `count`."""
    first = zone.index(_epoch(after)) + 1
    return [_seam(zone, i) for i in range(first, min(first + count, len(zone.starts)))]


def _seam(zone: Zone, i: int) -> Seam:
    start, before, after = zone.starts[i], zone.offsets[i - 1], zone.offsets[i]
    # Missing and repeated times begin at the smaller wall time, and it is their day that changes.
    day = (_EPOCH + timedelta(seconds=start + min(before, after))).date()
    return Seam(_EPOCH + timedelta(seconds=start), day, before, after)


def midnight(zone: Zone, day: date) -> datetime:
    """Return the first instant at which the clocks of a zone show this day or a later one."""
    wall = (day - _EPOCH.date()) // timedelta(seconds=1)
    # The stretch in which it lies may be any of those near it, and the first that fits counts.
    for i in range(max(zone.index(wall - 2 * DAY_HOURS * HOUR_S), 0), len(zone.starts)):
        found = max(wall - zone.offsets[i], zone.starts[i])
        if i + 1 == len(zone.starts) or found < zone.starts[i + 1]:
            return _EPOCH + timedelta(seconds=found)
    raise AssertionError(day)


def hours(seams_of_day: list[Seam]) -> float:
    """Return how many hours a day with these transitions has."""
    return DAY_HOURS - sum(seam.jump_s for seam in seams_of_day) / HOUR_S


def _epoch(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(seconds=1)
