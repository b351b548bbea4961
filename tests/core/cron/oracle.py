"""What the cron engine is held against: brute force, slow, obvious, and none of its code.

Zone offsets come from `zoneinfo`, weekdays from `datetime`; every minute is looked at.
"""

from __future__ import annotations

import io
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

from hypothesis import strategies as st

from timeball.core.cron import Timetable, load_zone, parse, resolve

MINUTE = timedelta(minutes=1)
MARGIN = timedelta(hours=26)  # the widest seam is a day
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Offsets are whole minutes in every zone since then (Monrovia was the last)
MODERN = int(datetime(1973, 1, 1, tzinfo=UTC).timestamp())
ENDS = int(datetime(2120, 1, 1, tzinfo=UTC).timestamp())
# Up to then all copies of the zone data agree, whatever their age
SETTLED = int(datetime(2022, 1, 1, tzinfo=UTC).timestamp())
GAPS = ("next_valid", "shift", "skip", "prev_valid")
OVERLAPS = ("first", "second", "both")
NAMES = tuple(
    name
    for name in resources.files("tzdata").joinpath("zones").read_text().split()
    if name not in {"Factory", "EST", "MST", "HST", "CET", "MET", "EET", "WET"}
)


@cache
def reference_zone(name: str) -> zoneinfo.ZoneInfo:
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    return zoneinfo.ZoneInfo.from_file(io.BytesIO(data), key=name)


@dataclass(frozen=True)
class Plan:
    """An expression and, independently of its text, the sets that it stands for."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: Callable[[date], bool]

    def names(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.days(wall.date())


def scan(plan: Plan, name: str, begin: datetime, end: datetime, policy: tuple[str, str]) -> list:
    """Return the instants in (begin, end] by looking at every minute of every wall in reach."""
    gap, overlap = policy
    zone = reference_zone(name)
    shown: list[tuple[datetime, datetime]] = []  # (instant, what the wall shows)
    at = begin - MARGIN
    while at <= end + MARGIN:
        shown.append((at, at.astimezone(zone).replace(tzinfo=None, fold=0)))
        at += MINUTE
    passes: dict[datetime, list[datetime]] = {}
    for at, wall in shown:
        passes.setdefault(wall, []).append(at)
    found = set()
    for wall, instants in passes.items():
        if plan.names(wall):
            found |= set({"first": instants[:1], "second": instants[-1:]}.get(overlap, instants))
    for (at, wall), (later, next_wall) in pairwise(shown):
        for minute in range(1, (next_wall - wall) // MINUTE):
            if gap != "skip" and plan.names(wall + minute * MINUTE):
                found.add({"next_valid": later, "prev_valid": at}.get(gap, at + minute * MINUTE))
    return sorted(instant for instant in found if begin < instant <= end)


@lru_cache(maxsize=4096)
def table(text: str, name: str, gap: str | None = None, overlap: str | None = None) -> Timetable:
    cron = parse(text)
    policy = resolve(cron, gap=gap, overlap=overlap)
    return Timetable(cron, load_zone(name, "package"), policy.gap, policy.overlap)


def instants() -> st.SearchStrategy[datetime]:
    return st.integers(MODERN, ENDS).map(lambda seconds: EPOCH + timedelta(seconds=seconds))


@st.composite
def seams(draw: st.DrawFn, until: int = ENDS) -> tuple[str, datetime]:
    """Draw a zone and a whole minute near one of its transitions, if it has any."""
    name = draw(st.sampled_from(NAMES))
    starts = [at for at in load_zone(name, "package").starts if MODERN < at < until]
    near = draw(st.sampled_from(starts or [MODERN]))
    return name, EPOCH + timedelta(seconds=near // 60 * 60) + MINUTE * draw(st.integers(-900, 900))


def _some(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(low, high), min_size=1, max_size=4)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw an expression of 5 fields whose hours often lie where clocks jump."""
    minutes = draw(st.one_of(_some(0, 59), st.just(frozenset(range(0, 60, 15)))))
    hours = draw(st.one_of(_some(0, 3), _some(0, 23), st.just(frozenset(range(24)))))
    kind = draw(st.sampled_from(["every", "weekdays", "days", "either"]))
    weekdays, days = draw(_some(0, 6)), draw(_some(1, 31))
    day_text = ",".join(map(str, days)) if kind in ("days", "either") else "*"
    weekday_text = ",".join(map(str, weekdays)) if kind in ("weekdays", "either") else "*"

    def fits(day: date) -> bool:
        on_weekday, on_day = day.isoweekday() % 7 in weekdays, day.day in days
        choice = {"every": True, "weekdays": on_weekday, "days": on_day}
        return choice.get(kind, on_weekday or on_day)

    def listed(values: frozenset[int]) -> str:
        return ",".join(map(str, sorted(values, key=lambda value: -value)))

    text = f"{listed(minutes)} {listed(hours)} {day_text} * {weekday_text}"
    return Plan(text, minutes, hours, fits)
