"""How often a schedule comes due on each day of a stretch of them."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from typing import Final, NamedTuple

from timeball.core.cron.agenda import Agenda
from timeball.core.cron.days import Seam, hours, midnight, seams

_DECEMBER: Final = 12


class Day(NamedTuple):
    """One local day of a schedule."""

    day: date
    hours: float
    runs: int
    capped: bool
    """Whether there are more than were counted."""

    seams: list[Seam]


def days(plan: Agenda, first: date, last: date, *, count_max: int) -> list[Day]:
    """Return every day from `first` to `last` with its occurrences, counted to `count_max`."""
    dates = [first + timedelta(days=number) for number in range((last - first).days + 2)]
    starts = [midnight(plan.zone, each) for each in dates]
    jumps = defaultdict(list)
    for seam in seams(plan.zone, starts[0] - timedelta(days=2), starts[-1]):
        jumps[seam.day].append(seam)
    second, found = timedelta(seconds=1), []
    for day, begin, end in zip(dates, starts, starts[1:], strict=False):
        runs = len(plan.between(begin - second, end - second, limit=count_max + 1))
        capped = runs > count_max
        length = hours(jumps[day])
        found.append(Day(day, length, min(runs, count_max), capped, jumps[day]))
    return found


def following_month(first: date) -> date:
    """Return the first day of the month after the one that begins on a day."""
    return date(first.year + first.month // _DECEMBER, first.month % _DECEMBER + 1, 1)
