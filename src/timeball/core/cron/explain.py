"""What a schedule will do: in words, at its zone's next transitions, and what to think about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from timeball.core.cron.agenda import Agenda
from timeball.core.cron.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    Cron,
    Kind,
    Span,
)
from timeball.core.cron.instants import epoch
from timeball.core.cron.occurrences import Timetable
from timeball.core.cron.policy import Gap, Overlap
from timeball.core.cron.prose import WEEKDAYS, prose
from timeball.core.cron.walltime import DAY_S, WallTimes
from timeball.core.cron.zone import Zone

__all__ = ["Preview", "dst_preview", "prose", "warnings"]

_FAR = timedelta(days=5 * 365 + 1)
_COUNTED_MAX = 1_000
_SHOWN_TIMES = 3
_CRONTAB_FIELDS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One transition of a zone and what a schedule does there."""

    at: datetime
    """The instant at which the clock jumps."""
    before: str
    """What the wall would show without the jump, as `2026-03-08 02:00`."""
    after: str
    """What it shows."""
    affected: int
    """How many of the schedule's wall times do not exist or come twice; counted to 1,000."""
    text: str
    """What the schedule does, as `02:30 does not exist: runs at 03:00 instead`."""


def dst_preview(timetable: Timetable, after: datetime, count: int = 2) -> list[Preview]:
    """Return the zone's next transitions after an instant, at most `count`."""
    zone = timetable.zone
    begin = zone.index(epoch(after)) + 1
    return [_preview(timetable, i) for i in range(begin, min(begin + count, len(zone.starts)))]


def _preview(timetable: Timetable, i: int) -> Preview:
    zone = timetable.zone
    at, before, after = zone.starts[i], zone.offsets[i - 1], zone.offsets[i]
    low, high = sorted((at + before, at + after))
    due: list[int] = []
    wall = timetable.walls.first(low)
    while wall is not None and wall < high and len(due) < _COUNTED_MAX:
        due.append(wall)
        wall = timetable.walls.first(wall + 1)
    if not due:
        text = f"nothing is due from {_clock(low)} to {_clock(high)}: nothing changes"
    elif after > before:
        text = _gap_text(timetable, i, due)
    else:
        text = _overlap_text(timetable, due)
    return Preview(
        at=_EPOCH + timedelta(seconds=at),
        before=_clock(at + before, dated=True),
        after=_clock(at + after, dated=True),
        affected=len(due),
        text=text,
    )


def _gap_text(timetable: Timetable, i: int, due: list[int]) -> str:
    zone = timetable.zone
    at, before, after = zone.starts[i], zone.offsets[i - 1], zone.offsets[i]
    missing = f"{_listed(due)} {'do' if len(due) > 1 else 'does'} not exist"
    match timetable.gap:
        case Gap.SKIP:
            return f"{missing}: skipped{_cadence(timetable)}"
        case Gap.SHIFT:
            moved = [wall - before + after for wall in due]
            return f"{missing}: runs at {_listed(moved)} instead"
        case Gap.NEXT_VALID:
            return f"{missing}: runs {'once ' * (len(due) > 1)}at {_clock(at + after)} instead"
        case Gap.PREV_VALID:
            found = timetable.last(at - 1)
            assert found is not None  # something is due in the gap and moved to before it
            return f"{missing}: runs {'once ' * (len(due) > 1)}at {_clock(found + before)} instead"


def _overlap_text(timetable: Timetable, due: list[int]) -> str:
    twice = f"{_listed(due)} {'come' if len(due) > 1 else 'comes'} twice"
    match timetable.overlap:
        case Overlap.FIRST:
            return f"{twice}: runs once, the first time"
        case Overlap.SECOND:
            return f"{twice}: runs once, the second time"
        case Overlap.BOTH:
            return f"{twice}: runs both times{_cadence(timetable)}"


def _cadence(timetable: Timetable) -> str:
    """Return the comfort that a schedule of all 24 hours keeps its rhythm in real time."""
    hourly = len(timetable.cron.hour.values) == HOUR.size
    return ", so that the rhythm in real time goes on" if hourly else ""


def _listed(walls: list[int]) -> str:
    shown = [_clock(wall) for wall in walls[:_SHOWN_TIMES]]
    if len(walls) > _SHOWN_TIMES:
        more = f"{_COUNTED_MAX}+" if len(walls) == _COUNTED_MAX else str(len(walls))
        return f"{', '.join(shown)} … ({more} times)"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def _clock(wall: int, *, dated: bool = False) -> str:
    """Return a wall time as text, seconds only where there are some."""
    shown = _EPOCH + timedelta(seconds=wall)
    time = f"{shown:%H:%M:%S}" if wall % 60 else f"{shown:%H:%M}"
    return f"{shown:%Y-%m-%d} {time}" if dated else time


def warnings(table: Timetable | Agenda, after: datetime) -> list[str]:
    """Return what somebody who registers this schedule should know, most surprising first."""
    zone = table.zone
    every = (table.cron,) if isinstance(table, Timetable) else table.expressions
    crons = [each for each in every if isinstance(each, Cron)]
    found = [text for cron in crons for text in (*_both_days(cron, zone, after), *_steps(cron))]
    first = table.next(after)
    if first is None:
        found.append("it never comes due again: its years, or its end, have passed")
    elif first - after > _FAR:
        found.append(f"it next comes due in more than 5 years, at {first:%Y-%m-%d %H:%M} UTC")
    found += [
        f"it has {cron.arity} fields, so the first is seconds; crontab files have 5 fields"
        for cron in crons
        if cron.arity > _CRONTAB_FIELDS
    ]
    if zone.alias_of:
        found.append(f"time zone {zone.name} is an old name; write {zone.alias_of}")
    return found


def _both_days(cron: Cron, zone: Zone, after: datetime) -> list[str]:
    if cron.day.everything or cron.weekday.everything:
        return []
    days = ", ".join(_first_days(WallTimes(cron), zone, after))
    rule = "both must fit" if cron.both_days else "either is enough"
    return [f"day-of-month and day-of-week are both set and {rule}: first on {days}"]


def _first_days(walls: WallTimes, zone: Zone, after: datetime) -> list[str]:
    """Return the first three days that an expression names, as the wall shows them."""
    days: list[str] = []
    at = epoch(after)
    wall = walls.first(at + zone.offset(at) + 1)
    while wall is not None and len(days) < _SHOWN_TIMES:
        day = _EPOCH + timedelta(seconds=wall)
        days.append(f"{WEEKDAYS[day.isoweekday() % 7]} {day:%Y-%m-%d}")
        wall = walls.first((wall // DAY_S + 1) * DAY_S)
    return days


def _steps(cron: Cron) -> list[str]:
    fields = (cron.second, cron.minute, cron.hour, cron.day, cron.month, cron.weekday)
    kinds = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
    pairs = zip(kinds, fields, strict=True)
    return [
        f"the step of {item} in the {kind.name} field does not divide {kind.size}: after "
        f"{item.values(kind)[-1]} it starts again, {kind.low + kind.size - item.values(kind)[-1]} "
        "later"
        for kind, field in pairs
        for item in field.items
        if isinstance(item, Span) and _whole(item, kind) and kind.size % item.step
    ]


def _whole(item: Span, kind: Kind) -> bool:
    return item.star or (item.first, item.last) == (kind.low, kind.high)
