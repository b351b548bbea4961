"""Lint rules about the five fields: what they say, and what their author may have meant."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from timeball.core.cron import Cron
from timeball.core.cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY, Field, Kind, Span
from timeball.core.cron.prose import WEEKDAYS
from timeball.importers.found import Origin
from timeball.importers.lint_finding import Finding, Severity, Subject
from timeball.importers.wording import counted

_HOURS: Final = 24
_MINUTES: Final = 60
_YEAR_DAYS: Final = 365
_LEAP_YEAR: Final = 2028
_SHORTEST_MONTH: Final = 28
_DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED_DAY: Final = re.compile(rf"\b({'|'.join(WEEKDAYS)})s?\b", re.IGNORECASE)
_DAY_NUMBER: Final = re.compile(r"""day_of_week\s*=\s*["']?\s*([0-7])\b""")
_COUNTS_FROM: Final = {
    Origin.APSCHEDULER: "APScheduler counts from Monday = 0",
    Origin.CELERY: "Celery counts from Sunday = 0",
}


def missing_minute(subject: Subject) -> Iterator[Finding]:
    """Find a schedule of some hours that fires in every minute of them."""
    cron = _cron(subject)
    if cron is None or len(cron.minute.values) < _MINUTES:
        return
    defaulted = subject.found.defaulted
    left_out = "minute" in defaulted
    hours = len(cron.hour.values)
    whole_day = "hour" in defaulted if left_out else hours == _HOURS
    on_some_days = not (cron.day.everything and cron.weekday.everything and cron.month.everything)
    if whole_day and not (left_out and on_some_days):
        return  # each minute of each day, or of some: that is written in no other way
    runs = hours * _MINUTES
    why = "the minute is left out, and that means every minute" if left_out else "its minute is *"
    instead = (
        'write minute=0 beside the other fields, as in crontab(minute=0, hour="*/4")'
        if left_out
        else f"write 0 {' '.join(str(cron).split()[1:])}"
    )
    yield subject.finding(
        "missing-minute",
        Severity.ERROR if left_out else Severity.WARNING,
        f"fires {counted(runs, 'time')} a day, not {hours}: {why}",
        instead,
    )


def weekday_numbering(subject: Subject) -> Iterator[Finding]:
    """Find a day of the week that is another one than its author says, or easily mistaken."""
    cron, found = _cron(subject), subject.found
    if cron is None or cron.weekday.everything or not cron.weekday.values:
        return
    fires = [WEEKDAYS[value] for value in cron.weekday.values]
    meant = {name.capitalize() for name in _NAMED_DAY.findall(f"{found.comment} {found.name}")}
    number = _DAY_NUMBER.search(found.text)
    counts = _COUNTS_FROM.get(subject.origin, "cron counts from Sunday = 0")
    if meant and len(fires) == 1 and meant.isdisjoint(fires):
        yield subject.finding(
            "weekday-numbering",
            Severity.ERROR,
            f"fires on {fires[0]}, and what is said of it is {' and '.join(sorted(meant))}: "
            f"{counts}",
            f"write the day by its name: {', '.join(sorted(name[:3].lower() for name in meant))}",
        )
    elif number and subject.origin is Origin.APSCHEDULER:
        yield subject.finding(
            "weekday-numbering",
            Severity.WARNING,
            f"day_of_week={number[1]} fires on {fires[0]}: {counts}, and cron from Sunday = 0",
            f'write the day by its name: day_of_week="{fires[0][:3].lower()}"',
        )
    elif "?" in found.expression and re.search(r"\d", found.expression.split()[-1]):
        yield subject.finding(
            "weekday-numbering",
            Severity.WARNING,
            f"fires on {', '.join(fires)}: the ? is Quartz's, and Quartz counts from Sunday = 1",
            "write the day by its name, such as MON",
        )


def day_or_weekday(subject: Subject) -> Iterator[Finding]:
    """Find both day fields set, which means either and not both."""
    cron = _cron(subject)
    if cron is None or cron.both_days:
        return  # one of them is any day, or both must fit, as most readers expect
    days = _days_a_year(subject)
    both = _days_of_both(cron)
    rather = f", not on the {counted(both, 'day')} that fit both" if both is not None else ""
    yield subject.finding(
        "day-or-weekday",
        Severity.WARNING,
        f"fires on {counted(days, 'day')} a year{rather}: day-of-month and day-of-week are both "
        "set, and either is enough",
        "leave one of the two *; where both must fit, test the other in the job, or write day_rule "
        '= "and" in Timeball',
    )


def uneven_step(subject: Subject) -> Iterator[Finding]:
    """Find a step that does not divide its field, so that one distance is another."""
    cron = _cron(subject)
    if cron is None:
        return
    fields = (cron.minute, cron.hour, cron.day, cron.month, cron.weekday)
    for kind, field in zip((MINUTE, HOUR, DAY, MONTH, WEEKDAY), fields, strict=True):
        for item in field.items:
            if isinstance(item, Span) and item.star and kind.size % item.step:
                yield _uneven(subject, kind, item)


def _uneven(subject: Subject, kind: Kind, item: Span) -> Finding:
    values = item.values(kind)
    rest = kind.low + kind.size - values[-1]
    fits = [step for step in range(2, kind.size) if kind.size % step == 0]
    unit = {"minute": "minute", "hour": "hour", "month": "month"}.get(kind.name, "day")
    near = min(fits, key=lambda step: abs(step - item.step), default=None)
    even = f"write */{near}, which divides {kind.size}, or " if near else "write "
    return subject.finding(
        "uneven-step",
        Severity.WARNING,
        f"{item} is not every {item.step} {unit}s: after {kind.name} {values[-1]} it starts again "
        f"{counted(rest, unit)} later",
        f"{even}an interval: @every {item.step}{unit[0]} in Timeball"
        if unit in {"minute", "hour"}
        else "name the days or months that you mean, or write an interval",
    )


def short_months(subject: Subject) -> Iterator[Finding]:
    """Find a 29th, 30th or 31st that some of the months in question do not have."""
    cron = _cron(subject)
    if cron is None:
        return
    for item in cron.day.items:
        if not isinstance(item, Span) or item.star or item.first != item.last:
            continue
        without = [month for month in cron.month.values if _length(month) < item.first]
        has = len(cron.month.values) - len(without)
        if item.first > _SHORTEST_MONTH and without and has:
            yield subject.finding(
                "short-months",
                Severity.WARNING,
                f"day {item.first} comes in {counted(has, 'month')} a year: the other "
                f"{len(without)} are skipped",
                "write L for the last day of every month, or a day up to 28",
            )


def _length(month: int) -> int:
    """Return the days of a month in a leap year."""
    return monthrange(_LEAP_YEAR, month)[1]


def _days_a_year(subject: Subject) -> int:
    """Return on how many days it comes due in the year ahead, by the clock on the wall."""
    assert subject.table is not None  # who asks has seen its cron expression
    walls, days = subject.table.walls, 0
    begin = (subject.after - _EPOCH) // timedelta(days=1) * _DAY_S
    wall = walls.first(begin)
    while wall is not None and wall < begin + _YEAR_DAYS * _DAY_S:
        days += 1
        wall = walls.first((wall // _DAY_S + 1) * _DAY_S)
    return days


def _days_of_both(cron: Cron) -> int | None:
    """Return on about how many days of a year both day fields fit; None with L, W or #."""
    if not (_plain(cron.day) and _plain(cron.weekday)):
        return None
    days = len(cron.day.values) * len(cron.month.values)
    return max(round(days * len(cron.weekday.values) / WEEKDAY.size), 1)


def _plain(field: Field) -> bool:
    return all(isinstance(item, Span) for item in field.items)


def _cron(subject: Subject) -> Cron | None:
    return subject.table.cron if subject.table else None
