"""When an APScheduler trigger fires: `CronTrigger`, `IntervalTrigger` and their aliases."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from timeball.core.cron import load_zone
from timeball.errors import UsageError
from timeball.importers.apscheduler_fields import FIELDS, cron_fields, crontab_fields
from timeball.importers.found import every
from timeball.importers.gathering import Timing
from timeball.importers.python_values import Scope

_BOUNDS: Final = ("start_date", "end_date", "timezone", "jitter")
_UNITS: Final = ("weeks", "days", "hours", "minutes", "seconds")
_ORDER: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cron": (*FIELDS, *_BOUNDS),
        "interval": (*_UNITS, *_BOUNDS),
        "date": ("run_date", "timezone"),
        "from_crontab": ("expr", "timezone"),
    }
)
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CronTrigger": "cron",
        "IntervalTrigger": "interval",
        "DateTrigger": "date",
        "from_crontab": "from_crontab",
    }
)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_INTERVAL_NOTE: Final = (
    "APScheduler counts an interval from when the program starts; @every counts from 1970, the "
    "same on every machine and after every restart"
)
TRIGGER_ARGUMENTS: Final = frozenset(name for names in _ORDER.values() for name in names)
"""The names that may stand beside the alias of a trigger."""


def trigger_call(node: ast.expr, scope: Scope) -> tuple[str, dict[str, ast.expr]]:
    """Return which trigger an expression makes, and its arguments by name.

    Raises:
        UsageError: It is none of those that can be said here.
    """
    node = scope.resolve(node)
    if isinstance(node, ast.Constant) and node.value in _ORDER:
        return str(node.value), {}
    if isinstance(node, ast.Call):
        name = scope.dotted(node.func).rpartition(".")[2]
        kind = _ALIASES.get(name)
        if kind is None:
            raise UsageError(
                f"{name or 'this'} is no trigger that a schedule can have: write one schedule for "
                "each cron expression or interval in it"
            )
        given = {each.key: each.value for each in scope.keywords(node)}
        return kind, given | dict(zip(_ORDER[kind], node.args, strict=False))
    raise scope.unknown(node)


def trigger_timing(
    kind: str, given: Mapping[str, ast.expr], scope: Scope, *, tz: str | None
) -> Timing:
    """Return when a trigger fires.

    Args:
        kind: As `trigger_call` gives it.
        given: Its arguments.
        scope: Where they stand.
        tz: The zone where it names none; None is the machine's.

    Raises:
        UsageError: It cannot be said here; the text says what to do.
    """
    if unknown := sorted(given.keys() - set(_ORDER[kind])):
        raise UsageError(f"the trigger {kind!r} has no {', '.join(unknown)}: take it out")
    zone = scope.zone(given["timezone"]) if "timezone" in given else tz
    values = {name: scope.literal(value) for name, value in given.items() if name != "timezone"}
    match kind:
        case "date":
            when = values.get("run_date") or "at once"
            raise UsageError(
                f"it runs once, {when}: submit the job with run_at where the program starts, or "
                "with `timeball submit KIND --at INSTANT`"
            )
        case "interval":
            return _interval(values, zone)
        case "from_crontab":
            return _from_crontab(values, zone)
    fields = cron_fields({name: values.get(name) for name in FIELDS})
    return Timing(
        expression=fields.expression,
        tz=zone,
        day_rule=fields.day_rule,
        jitter_s=_jitter(values),
        start_at=_instant("start_date", values, zone),
        end_at=_instant("end_date", values, zone),
        defaulted=fields.defaulted,
    )


def _from_crontab(values: Mapping[str, Any], zone: str | None) -> Timing:
    text = str(values.get("expr", ""))
    if text.startswith("@"):
        return Timing(expression=text, tz=zone)
    fields = cron_fields(crontab_fields(text))
    numbers = any(char.isdigit() for char in text.rsplit(maxsplit=1)[-1])
    remark = (
        f"the weekday of from_crontab({text!r}) counts from Monday = 0 in APScheduler 3, unlike "
        f"cron: here it is {fields.expression!r}; check that this is what was meant"
    )
    return Timing(
        expression=fields.expression,
        tz=zone,
        day_rule=fields.day_rule,
        needs=(remark,) if numbers else (),
    )


def _interval(values: Mapping[str, Any], zone: str | None) -> Timing:
    lengths = {name: values[name] for name in _UNITS if values.get(name) is not None}
    if not all(isinstance(each, int | float) for each in lengths.values()):
        raise UsageError(f"its interval {lengths} is no number: write numbers")
    try:
        length = timedelta(**lengths)
    except OverflowError as error:
        raise UsageError(f"its interval is too long ({error}): write at most ten years") from None
    seconds = length.total_seconds()
    expression = every(seconds)
    if expression is None:
        raise UsageError(f"its interval of {seconds:g} s is no whole number of seconds above 0")
    start = _instant("start_date", values, zone)
    if start is not None:
        phase = (start - _EPOCH) % length
        shift = every(phase.total_seconds())
        expression += f" {shift.removeprefix('@every ')}" if shift else ""
    return Timing(
        expression=expression,
        tz=zone,
        interval_s=seconds,
        jitter_s=_jitter(values),
        start_at=start,
        end_at=_instant("end_date", values, zone),
        notes=() if start else (_INTERVAL_NOTE,),
    )


def _jitter(values: Mapping[str, Any]) -> int | None:
    jitter = values.get("jitter")
    if jitter is None:
        return None
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or jitter < 0:
        raise UsageError(f"jitter {jitter!r} is no number of seconds: write one")
    return math.ceil(jitter)


def _instant(name: str, values: Mapping[str, Any], zone: str | None) -> datetime | None:
    """Return a bound as an instant; a naive one is in the trigger's zone."""
    value = values.get(name)
    if value is None:
        return None
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise UsageError(f"{name} {str(value)!r} is no date: write YYYY-MM-DD HH:MM") from None
    if instant.tzinfo is not None:
        return instant
    if zone is None:
        raise UsageError(f"{name} {value} names no zone, nor does its trigger: write timezone=…")
    load_zone(zone)
    return instant.replace(tzinfo=ZoneInfo(zone))
