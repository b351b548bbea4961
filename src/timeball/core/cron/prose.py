"""Says a cron expression in plain English."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from timeball.core.cron.expression import Expression
from timeball.core.cron.fields import (
    DAY,
    HOUR,
    LAST,
    MINUTE,
    MONTH,
    WEEKDAY,
    YEAR,
    Cron,
    Field,
    FromEnd,
    Hashed,
    Item,
    Kind,
    Nearest,
    Nth,
    Span,
)

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NTHS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_CLOCK_TIMES_MAX = 6
_LISTED_DAYS_MAX = 5
_RUN_MIN = 3


def prose(expression: Expression) -> str:
    """Return when an expression comes due, as in `at 09:00, Monday to Friday`."""
    return _prose(expression) if isinstance(expression, Cron) else expression.prose()


def _prose(cron: Cron) -> str:
    clocks = _clocks(cron)
    said, days = f"at {_and(clocks)}" if clocks else _pulses(cron), _days(cron)
    if days == "every day" and not clocks and cron.month.everything:
        days = ""  # "every 10 minutes" says so already
    months = "" if _is_date(cron) else _among(cron.month, MONTH, ["", *MONTHS])
    for part in (days, months, _among(cron.year, YEAR)):
        if part:
            said += f", {part}" if part.split()[0] in WEEKDAYS else f" {part}"
    return said.replace(" of the month in ", " of ")


def _clocks(cron: Cron) -> list[str]:
    """Return the times of day where they are few enough to be told one by one."""
    fields = [field.values for field in (cron.hour, cron.minute, cron.second)]
    if prod(map(len, fields)) > _CLOCK_TIMES_MAX:
        return []
    shown = 2 if fields[2] == (0,) else 3
    return [":".join(f"{part:02}" for part in time[:shown]) for time in product(*fields)]


def _pulses(cron: Cron) -> str:
    """Return the times of day as a rhythm."""
    minutes, seconds = _minutes(cron.minute, cron.hour), cron.second
    if seconds.values == (0,):
        return minutes
    pulse = _pulse(seconds, "second") or f"at {_numbered(seconds, 'second')}"
    if minutes == "every minute":
        return pulse if pulse.startswith("every") else f"{pulse} of every minute"
    return f"{minutes}, each time {pulse} of that minute"


def _minutes(minutes: Field, hours: Field) -> str:
    """Return the minutes and hours as a rhythm."""
    pulse, listed = _pulse(minutes, "minute"), f"at {_numbered(minutes, 'minute')}"
    run = _run(hours, at_least=1)
    if len(hours.values) == HOUR.size:
        return "every hour" if minutes.values == (0,) else pulse or f"{listed} of every hour"
    if run and len(minutes.values) == 1:
        every = "every hour" if run.step == 1 else f"every {run.step} hours"
        whole_day = hours.values == tuple(range(0, HOUR.size, run.step))
        if whole_day and HOUR.size % run.step == 0 and minutes.values == (0,):
            return every
        return f"{every} {_window(run, minutes)}"
    if run and run.step == 1 and pulse:
        return f"{pulse} {_window(run, minutes)}"
    return f"{pulse or listed} of the {_numbered(hours, 'hour')}"


def _window(hours: Span, minutes: Field) -> str:
    """Return the first and the last time of day, as in `from 09:00 to 17:50`."""
    last = hours.values(HOUR)[-1] % HOUR.size
    return f"from {hours.first:02}:{minutes.values[0]:02} to {last:02}:{minutes.values[-1]:02}"


def _pulse(field: Field, unit: str) -> str:
    """Return `every 10 minutes` where the values are evenly spaced all round, else ""."""
    count = len(field.values)
    if count == MINUTE.size:
        return f"every {unit}"
    if count > 1 and field.values == tuple(range(0, MINUTE.size, MINUTE.size // count)):
        return f"every {MINUTE.size // count} {unit}s"
    return ""


def _numbered(field: Field, unit: str) -> str:
    run, plural = _run(field), "s" if len(field.values) > 1 else ""
    if run and run.step == 1:
        return f"{unit}s {run.first} to {run.last}"
    return f"{unit}{plural} {_and(map(str, field.values))}"


def _days(cron: Cron) -> str:
    """Return the two day fields in words, under the rule for having both."""
    if _is_date(cron):
        return f"on {cron.day.values[0]} {MONTHS[cron.month.values[0] - 1]}"
    any_day = len(cron.day.values) == DAY.size
    any_weekday = len(cron.weekday.values) == WEEKDAY.size
    by_day, by_weekday = _month_days(cron.day, cron.month), _week_days(cron.weekday)
    if cron.both_days:
        if any_day:
            return "every day" if any_weekday else by_weekday
        return by_day if any_weekday else f"{by_day}, if it is {_if_weekday(cron.weekday)}"
    if any_day or any_weekday:
        return "every day"
    return f"{by_day} and also {'on ' if by_weekday[0].isupper() else ''}{by_weekday}"


def _is_date(cron: Cron) -> bool:
    """Return whether the day fields and the month name one date of the year."""
    plain = len(cron.day.items) == len(cron.day.values) == len(cron.month.values) == 1
    return plain and cron.weekday.everything


def _month_days(field: Field, months: Field) -> str:
    run = _run(field)
    month = "every month" if months.everything else "the month"
    if run and run.step == 1:
        return f"from the {_ordinal(run.first)} to the {_ordinal(run.last)} of {month}"
    if run and len(field.values) > _LISTED_DAYS_MAX:
        return f"on every {_ordinal(run.step)} day of {month}, from the {_ordinal(run.first)} on"
    words = [f"the {_ordinal(value)}" for value in field.values]
    words += [_month_day(item) for item in field.items if not isinstance(item, Span | Hashed)]
    return f"on {_and(words)} of {month}"


def _month_day(item: Item) -> str:
    match item:
        case FromEnd(back=0):
            return "the last day"
        case FromEnd(back=back):
            return f"the {_ordinal(back)} day before the last day"
        case Nearest(day=day) if day == LAST:
            return "the last working day (Monday to Friday)"
        case Nearest(day=day):
            return f"the working day (Monday to Friday) nearest to the {_ordinal(day)}"
        case _:
            raise AssertionError(item)


def _week_days(field: Field) -> str:
    run = _run(field)
    if run and run.step == 1 and len(field.values) < WEEKDAY.size:
        return f"{WEEKDAYS[run.first % 7]} to {WEEKDAYS[run.last % 7]}"
    words = [WEEKDAYS[value] for value in field.values]
    words += [
        f"the {_NTHS[item.nth]} {WEEKDAYS[item.weekday]} of the month"
        for item in field.items
        if isinstance(item, Nth)
    ]
    if len(words) == len(field.values) == 1:
        return f"every {words[0]}"
    return f"on {_and(words)}"


def _if_weekday(field: Field) -> str:
    return _week_days(field).removeprefix("on ").removeprefix("every ").replace(" and ", " or ")


def _among(field: Field, kind: Kind, names: Sequence[str] = ()) -> str:
    """Return `in June`, `from November to February` or nothing for every month or year."""
    if len(field.values) == kind.size:
        return ""
    words = {value: names[value] if names else str(value) for value in field.values}
    run = _run(field)
    if run and run.step == 1:
        return f"from {words[run.first]} to {words[run.last]}"
    return f"in {_and(words.values())}"


def _run(field: Field, at_least: int = _RUN_MIN) -> Span | None:
    """Return the one range that the field is, in its own order, if it is long enough."""
    item = field.items[0]
    if len(field.items) > 1 or not isinstance(item, Span) or len(field.values) < at_least:
        return None
    return item


def _ordinal(number: int) -> str:
    teens = number // 10 == 1
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _and(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
