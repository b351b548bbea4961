"""The fields of an APScheduler CronTrigger as an expression of ours.

APScheduler's rules: weekdays count from Monday = 0; a field that is not given is `*` if a less
significant one is given, and else its minimum; all fields must fit, both day fields too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.errors import UsageError

FIELDS: Final = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
"""The most significant first."""

_MINIMA: Final[Mapping[str, str]] = MappingProxyType(
    {"month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}
)
_WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_RANGE = re.compile(r"(\*|\d+|[a-z]+)(?:-(\d+|[a-z]+))?(?:/(\d+))?", re.ASCII | re.IGNORECASE)
_PLACED = re.compile(r"(1st|2nd|3rd|4th|5th|last) +(\w+)", re.ASCII | re.IGNORECASE)
_LAST: Final = "last"


class Fields(NamedTuple):
    """What the fields come to."""

    expression: str
    day_rule: str | None
    defaulted: frozenset[str]


def cron_fields(given: Mapping[str, Any]) -> Fields:
    """Return the expression for the given fields.

    Args:
        given: Numbers and texts by the names in `FIELDS`; None counts as not given.

    Raises:
        UsageError: It cannot be said here, or APScheduler refuses it too.
    """
    said = {name: _text(name, given[name]) for name in FIELDS if given.get(name) is not None}
    if said.get("week", "*") != "*":
        raise UsageError(
            f"week={said['week']!r}: there is no field for weeks of the year; write the dates, or "
            "'@calendar every 2 weeks' where every other week is meant"
        )
    whole = _with_defaults(said)
    placed, day = _placed_days(whole["day"])
    weekday = _weekdays(whole["day_of_week"])
    if placed:
        if weekday != "*" or day:
            raise UsageError(
                f"day={whole['day']!r} mixes weekdays of the month with other days: write two "
                "schedules"
            )
        day, weekday = "*", ",".join(placed)
    parts = [whole["minute"], whole["hour"], day, whole["month"].upper(), weekday]
    if whole["second"] != "0" or whole["year"] != "*":
        parts.insert(0, whole["second"])
    if whole["year"] != "*":
        parts.append(_year(whole["year"]))
    both = day != "*" and weekday != "*"
    return Fields(" ".join(parts), "and" if both else None, frozenset(whole.keys() - said.keys()))


def crontab_fields(text: str) -> Mapping[str, str]:
    """Return the fields that `CronTrigger.from_crontab` makes of five fields.

    Raises:
        UsageError: There are not five.
    """
    parts = text.split()
    names = ("minute", "hour", "day", "month", "day_of_week")
    if len(parts) != len(names):
        raise UsageError(f"from_crontab takes five fields, and {text!r} has {len(parts)}")
    return dict(zip(names, parts, strict=True))


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UsageError(f"{name}={value!r} is no field of a CronTrigger: write a number or a text")
    return str(value).strip()


def _with_defaults(said: Mapping[str, str]) -> dict[str, str]:
    least = max((FIELDS.index(name) for name in said), default=len(FIELDS))
    return {
        name: said.get(name, _MINIMA.get(name, "*") if at > least else "*")
        for at, name in enumerate(FIELDS)
    }


def _placed_days(text: str) -> tuple[list[str], str]:
    """Return the days of the month that are weekdays (`FRI#2`), and the other ones."""
    placed, others = [], []
    for part in text.split(","):
        plain = part.strip()
        if found := _PLACED.fullmatch(plain):
            weekday = _weekday(found[2])
            last = found[1].lower() == _LAST
            placed.append(f"{weekday}L" if last else f"{weekday}#{found[1][0]}")
        else:
            others.append("L" if plain.lower() == _LAST else plain)
    return placed, ",".join(others)


def _weekdays(text: str) -> str:
    return ",".join(_weekday_part(part.strip()) for part in text.split(","))


def _weekday_part(text: str) -> str:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise UsageError(f"day_of_week={text!r} is not understood: write mon-fri, or 0-4")
    first, last, step = found[1], found[2], int(found[3] or 1)
    if first == "*":
        return "*" if step == 1 else ",".join(_WEEKDAYS[:: step or 1])
    ends = [_WEEKDAYS.index(_weekday(word)) for word in (first, last) if word]
    if found[3] and not last:
        ends.append(len(_WEEKDAYS) - 1)
    days = _WEEKDAYS[ends[0] : ends[-1] + 1 : step or 1]
    if not days:
        raise UsageError(f"day_of_week={text!r} runs backwards, which APScheduler refuses too")
    return f"{days[0]}-{days[-1]}" if last and step == 1 else ",".join(days)


def _weekday(word: str) -> str:
    if word.isdigit() and int(word) < len(_WEEKDAYS):
        return _WEEKDAYS[int(word)]
    if word.upper() in _WEEKDAYS:
        return word.upper()
    raise UsageError(f"day_of_week={word!r} is none: write mon to sun, or 0 (Monday) to 6")


def _year(text: str) -> str:
    if "*" in text:
        raise UsageError(f"year={text!r} counts from another year there: write the years out")
    return text
