"""When a Celery beat entry runs: `crontab(...)`, `schedule(...)`, an interval, and what is none.

The rules are Celery's own: a field that is not given is `*`, also the minute; weekdays count from
Sunday = 0 to 6; ranges may wrap; where both day fields are restricted, both must fit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from timeball.core.cron import load_zone
from timeball.errors import InvalidSchedule, UsageError
from timeball.importers.found import every
from timeball.importers.gathering import Timing
from timeball.importers.python_values import Scope

# In the order of a cron expression; the bounds are those that Celery checks.
_FIELDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "minute": (0, 59),
        "hour": (0, 23),
        "day_of_month": (1, 31),
        "month_of_year": (1, 12),
        "day_of_week": (0, 6),
    }
)
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
_ORDER_IS_THE_SAME: Final = 2
RELATIVE: Final = "relative=True rounds the runs: write a cron expression for the times"
_INTERVAL_NOTE: Final = (
    "Celery counts an interval from when beat last ran it; @every counts from 1970, the same on "
    "every machine and after every restart"
)


def celery_timing(node: ast.expr, scope: Scope) -> Timing:
    """Return when an entry with this `schedule` runs.

    Raises:
        UsageError: It cannot be said here; the text says what to do.
    """
    node = scope.resolve(node)
    if isinstance(node, ast.Call):
        name = scope.dotted(node.func).rpartition(".")[2]
        if name == "crontab":
            return _crontab(node, scope)
        if name == "schedule":
            return _interval_call(node, scope)
        if name == "solar":
            raise UsageError(
                "the sun's hours are no schedule here: write a time of day, or have a job look "
                "the hour up and submit the other one with run_at"
            )
    return _interval(scope.literal(node), scope.source.text_of(node))


def _crontab(node: ast.Call, scope: Scope) -> Timing:
    given = {each.key: each.value for each in scope.keywords(node)}
    if len(node.args) > _ORDER_IS_THE_SAME:
        raise UsageError(
            "the order of crontab's fields after the hour differs between versions of Celery: "
            "name them, such as day_of_week=1"
        )
    given |= dict(zip(("minute", "hour"), node.args, strict=False))
    notes: tuple[str, ...] = ()
    tz = None
    if (clock := given.pop("nowfun", None)) is not None:
        tz = _zone_in(clock)
        notes = (f"nowfun names the zone {tz}",)
    given.pop("app", None)
    if unknown := sorted(given.keys() - _FIELDS.keys()):
        raise UsageError(
            f"crontab has no {', '.join(unknown)}: its fields are {', '.join(_FIELDS)}"
        )
    fields = {
        name: _field(name, scope.literal(given[name])) if name in given else "*" for name in _FIELDS
    }
    both = "*" not in (fields["day_of_month"], fields["day_of_week"])
    return Timing(
        expression=" ".join(fields.values()),
        tz=tz,
        day_rule="and" if both else None,
        defaulted=frozenset(_FIELDS.keys() - given.keys()),
        notes=notes,
    )


def _zone_in(clock: ast.expr) -> str:
    """Return the one zone that is named inside a `nowfun`.

    Raises:
        UsageError: There is not exactly one.
    """
    texts = {
        node.value
        for node in ast.walk(clock)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    zones = [text for text in sorted(texts) if _is_zone(text)]
    if len(zones) != 1:
        raise UsageError("its nowfun is a function: write the zone whose clock it shows as tz")
    return zones[0]


def _is_zone(text: str) -> bool:
    try:
        load_zone(text)
    except InvalidSchedule:
        return False
    return True


def _field(name: str, value: Any) -> str:
    low, high = _FIELDS[name]
    parts = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, bool | float) or value is None or not parts:
        raise UsageError(f"{name}={value!r} is no field of crontab: write a number or a text")
    return ",".join(_part(name, str(part).strip(), low, high) for part in parts)


def _part(name: str, text: str, low: int, high: int) -> str:
    found = _PART.fullmatch(text)
    if found is None or (found[2] and found[4] and not found[3]):
        raise UsageError(f"{name}={text!r} is refused by Celery too: write */n, a, a-b or a-b/n")
    step = f"/{found[4]}" if found[4] else ""
    if found[1]:
        return f"*{step}"
    ends = [_number(name, word, low, high) for word in (found[2], found[3]) if word]
    return "-".join(ends) + step


def _number(name: str, word: str, low: int, high: int) -> str:
    if not word.isdigit():
        short = word[:3].lower()
        if name != "day_of_week" or short not in _WEEKDAYS:
            raise UsageError(f"{name}={word!r} is refused by Celery too: write {low} to {high}")
        return short.upper()
    if not low <= int(word) <= high:
        raise UsageError(f"{name}={word!r} is refused by Celery too: write {low} to {high}")
    return str(int(word))


def _interval_call(node: ast.Call, scope: Scope) -> Timing:
    given = {each.key: each.value for each in scope.keywords(node)}
    given |= dict(zip(("run_every", "relative"), node.args, strict=False))
    if "run_every" not in given:
        raise UsageError("its schedule() has no run_every: write the interval")
    if "relative" in given and scope.literal(given["relative"]):
        raise UsageError(RELATIVE)
    run_every = given["run_every"]
    return _interval(scope.literal(run_every), scope.source.text_of(run_every))


def _interval(value: Any, text: str) -> Timing:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise UsageError(f"`{text}` is neither crontab(…) nor an interval: write one of them")
    expression = every(seconds)
    if expression is None:
        raise UsageError(f"{seconds:g} s is no whole number of seconds above 0: write one")
    return Timing(expression=expression, interval_s=float(seconds), notes=(_INTERVAL_NOTE,))
