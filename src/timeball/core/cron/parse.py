"""Reads cron text into a `Cron`, or says which field is wrong and what to write instead."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from timeball.core.cron.fields import (
    DAY,
    HOUR,
    LAST,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    Cron,
    DayRule,
    Field,
    FromEnd,
    Hashed,
    Item,
    Kind,
    Nearest,
    Nth,
    Span,
    spread,
)
from timeball.core.cron.walltime import never
from timeball.errors import InvalidSchedule

# Longer than any sensible list, and short enough that nothing a text asks for takes long
TEXT_LENGTH_MAX = 1_000
FIELD_LENGTH_MAX = 256
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_E = TypeVar("_E", bound=StrEnum)
_KINDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)
_KINDS_OF_ARITY = {5: _KINDS[1:6], 6: _KINDS[:6], 7: _KINDS}
_ALWAYS = {"second": "0", "year": "*"}
_VALUE = r"[0-9]{1,4}|[A-Z]{3}"
_SPAN = re.compile(rf"(?:(\*)|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]{{1,4}}))?", re.ASCII)
_FROM_END = re.compile(r"L(?:-([0-9]{1,2}))?", re.ASCII)
_NEAREST = re.compile(r"(L|[0-9]{1,2})W", re.ASCII)
_NTH = re.compile(rf"({_VALUE})(?:(L)|#([0-9]{{1,2}}))", re.ASCII)
_HASHED = re.compile(rf"H(?:\(({_VALUE})-({_VALUE})\))?(?:/([0-9]{{1,4}}))?", re.ASCII)
_EVERY_MONTH_HAS = 28  # what H alone may pick
_SHOWN_LENGTH_MAX = 40
_NTH_MAX = 5
_PARSED_KEPT = 1_024


def parse(text: str, *, name: str | None = None, day_rule: DayRule | str = DayRule.CRON) -> Cron:
    """Return what an expression of 5, 6 (seconds first) or 7 (year last) fields means.

    Args:
        text: The expression.
        name: The schedule's name, from which `H` picks its values.
        day_rule: Whether both day fields must fit where both are restricted.

    Raises:
        InvalidSchedule: The text is no expression, or one that never comes due. It names the
            field, the bad text and what to write.
    """
    text = plain_text(text)
    # the name matters to H alone; without one, equal texts share what was read once
    return _parsed(text, name if "H" in text.upper() else None, one_of(DayRule, day_rule))


def plain_text(text: object) -> str:
    """Return a text that is short and plain enough to be looked at.

    Raises:
        InvalidSchedule: It is not.
    """
    if not isinstance(text, str) or not text.isascii() or len(text) > TEXT_LENGTH_MAX:
        raise InvalidSchedule(
            f"cron expression {shown(text)} is not plain ASCII text of at most "
            f"{TEXT_LENGTH_MAX} characters; write one such as '30 2 * * *'"
        )
    text = text.strip(" \t\r\n")
    if not text.replace("\t", " ").isprintable():
        raise InvalidSchedule(
            f"cron expression {shown(text)} holds a line break or control character; "
            "write one expression, its fields separated by blanks"
        )
    return text


@lru_cache(_PARSED_KEPT)
def _parsed(text: str, name: str | None, day_rule: DayRule) -> Cron:
    fields = _split(text)
    kinds = _KINDS_OF_ARITY[len(fields)]
    written = {kind.name: part for kind, part in zip(kinds, fields, strict=True)}
    second, minute, hour, day, month, weekday, year = (
        _field(kind, written.get(kind.name) or _ALWAYS[kind.name], name) for kind in _KINDS
    )
    cron = Cron(
        second=second,
        minute=minute,
        hour=hour,
        day=day,
        month=month,
        weekday=weekday,
        year=year,
        arity=len(fields),
        day_rule=day_rule,
    )
    if never(cron):
        raise InvalidSchedule(
            f"day-of-month, month and day-of-week fields: {shown(text)} never comes due, because "
            "no year has such a date; write a day that the month has, or L for its last day"
        )
    return cron


def _split(text: str) -> list[str]:
    """Return the 5, 6 or 7 fields of the text, nicknames written out."""
    if text.startswith("@"):
        text = _nickname(text)
    fields = text.upper().split()
    if len(fields) not in _KINDS_OF_ARITY:
        raise InvalidSchedule(
            f"cron expression {shown(text)} has {len(fields)} fields; write 5 (minute hour "
            "day-of-month month day-of-week), 6 (second first) or 7 (second first, year last)"
        )
    return fields


def _nickname(text: str) -> str:
    name = text.lower()
    if name == "@reboot":
        raise InvalidSchedule(
            "cron expression '@reboot' names no time: workers start at any moment and on many "
            "machines; write a time such as '@daily', or submit the job where the program starts"
        )
    if name not in NICKNAMES:
        raise InvalidSchedule(
            f"cron expression {shown(text)} is no known nickname; write one of "
            + ", ".join([*NICKNAMES, "@every 90m", "@calendar …", "@rrule …"])
        )
    return NICKNAMES[name]


@lru_cache(_PARSED_KEPT)
def _field(kind: Kind, text: str, name: str | None) -> Field:
    if len(text) > FIELD_LENGTH_MAX:
        raise _wrong(kind, text, f"is longer than {FIELD_LENGTH_MAX} characters")
    if text == "?" and kind in (DAY, WEEKDAY):
        text = "*"
    items = tuple(
        _hashed(kind, part, name) if part.startswith("H") else _item(kind, part, text)
        for part in text.split(",")
    )
    spans = [item.values(kind) for item in items if isinstance(item, Span)]
    spans += [item.values() for item in items if isinstance(item, Hashed)]
    values = {value for span in spans for value in span}
    return Field(items, tuple(sorted({kind.low + (v - kind.low) % kind.size for v in values})))


def _item(kind: Kind, text: str, whole: str) -> Item:
    if not text:
        raise _wrong(kind, whole, "has an empty list item")
    if kind is DAY and (found := _FROM_END.fullmatch(text)):
        back = int(found[1] or 0)
        if found[1] is None or DAY.low <= back < DAY.high:
            return FromEnd(back)
        raise _wrong(kind, text, "counts back out of every month")
    if kind is DAY and (found := _NEAREST.fullmatch(text)):
        return Nearest(LAST if found[1] == "L" else _value(kind, found[1], text))
    if kind is WEEKDAY and (found := _NTH.fullmatch(text)):
        nth = LAST if found[2] else int(found[3])
        if nth == LAST or 1 <= nth <= _NTH_MAX:
            return Nth(_value(kind, found[1], text) % 7, nth)
        raise _wrong(kind, text, f"is no week of a month; # takes 1 to {_NTH_MAX}")
    return _span(kind, text)


def _hashed(kind: Kind, text: str, name: str | None) -> Hashed:
    found = _HASHED.fullmatch(text)
    if found is None or kind is YEAR:
        raise _wrong(kind, text, "is not understood")
    if name is None:
        raise _wrong(kind, text, "is picked by a schedule's name, and here is none")
    begin, end, every = found.groups()
    highest = {DAY: _EVERY_MONTH_HAS, WEEKDAY: WEEKDAY.high - 1}.get(kind, kind.high)
    first = _value(kind, begin, text) if begin else kind.low
    last = _value(kind, end, text) if end else highest
    step = int(every) if every else 0
    if last < first or not (every is None or 1 <= step <= last - first + 1):
        raise _wrong(kind, text, "runs backwards or steps further than it reaches")
    start = first + spread(name, kind.name, step or last - first + 1)
    return Hashed(first, last, step, start, begin is not None)


def _span(kind: Kind, text: str) -> Span:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise _wrong(kind, text, "is not understood")
    star, begin, end, every = found.groups()
    step = int(every or 1)
    if not 1 <= step <= kind.size:
        raise _wrong(
            kind,
            text,
            f"has a step outside 1 to {kind.size} (steps count within the field and start again)",
        )
    if star:
        return Span(kind.low, kind.high, step, star=True)
    first = _value(kind, begin, text)
    last = _value(kind, end, text) if end else kind.high if every else first
    if kind is WEEKDAY and first == WEEKDAY.high:
        first, last = 0, last % 7  # a range that begins on Sunday begins at 0
    if kind is YEAR and last < first:
        raise _wrong(kind, text, "runs backwards")
    return Span(first, last, step if last != first else 1)


def _value(kind: Kind, word: str, text: str) -> int:
    if word in kind.names:
        return kind.names.index(word) + kind.low
    if word.isdigit() and kind.low <= int(word) <= kind.high:
        return int(word)
    why = "is out of range" if word.isdigit() else "names nothing"
    raise _wrong(kind, text, why)


def _wrong(kind: Kind, text: str, why: str) -> InvalidSchedule:
    numbers = f"{kind.low}-{kind.high}"
    names = f" or {kind.names[0]}-{kind.names[-1]}" if kind.names else ""
    special = {
        "day-of-month": ", or L, L-3, 15W, LW, ?",
        "day-of-week": ", or 5#3 (third Friday), 5L (last Friday), ?",
    }.get(kind.name, "")
    return InvalidSchedule(
        f"{kind.name} field: {shown(text)} {why}; write numbers {numbers}{names}, alone, in "
        f"lists (1,5), ranges (1-5) or steps (*/5){special}"
    )


def one_of(kind: type[_E], value: str) -> _E:
    """Return the member of an enumeration, or say which there are."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind)
        what = "_".join(re.findall("[A-Z][a-z]*", kind.__name__)).lower()
        raise InvalidSchedule(f"{what} {shown(value)} is unknown; write one of {names}") from None


def shown(text: object) -> str:
    """Return the text in quotes, cut short: an error must not repeat a megabyte."""
    if not isinstance(text, str):
        return f"of type {type(text).__name__}"
    cut = text[:_SHOWN_LENGTH_MAX]
    return ascii(cut) + ("…" if len(text) > _SHOWN_LENGTH_MAX else "")
