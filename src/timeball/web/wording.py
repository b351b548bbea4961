"""Numbers, times and states in the words that people read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from timeball.core.cron import Zone
from timeball.core.redaction import redacted_value
from timeball.core.states import Event, State, allowed
from timeball.web.zones import offset, wall

NOTHING: Final = "\N{EN DASH}"
"""Stands where there is nothing to say."""

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_MANY: Final = 10_000_000
_SECOND: Final = timedelta(seconds=1)
_MS: Final = 0.001
_TENFOLD: Final = 10.0
_PARTS: Final = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1.0, "s"))


def number(value: float) -> str:
    """Return a number as a tile has room for it."""
    if value < _MANY:
        return f"{value:,.0f}"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:,.1f} {letter}"
    raise AssertionError(value)


def duration(seconds: float | None) -> str:
    """Return how long something took, in two parts at most; a clock that went back took none."""
    if seconds is None:
        return NOTHING
    seconds = max(0.0, seconds)
    for size, unit, small, small_unit in _PARTS:
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            rest = int(rest // small)
            return f"{whole:.0f} {unit}" + (f" {rest} {small_unit}" if rest else "")
    if seconds >= 1:
        return f"{seconds:.1f} s" if seconds >= _TENFOLD else f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= _MS or not seconds else "< 1 ms"


def whole_seconds(seconds: int) -> str:
    """Return how long something is in whole seconds, where less does not matter."""
    return duration(seconds) if seconds >= _MINUTE else f"{seconds} s"


def instant(at: datetime | None, now: datetime | None = None, zone: Zone | None = None) -> Markup:
    """Return an instant: how long ago or ahead where `now` is given, else the time itself.

    Args:
        at: The instant; None: there is none.
        now: From when on it is told.
        zone: By whose clocks it is told; None: in UTC.
    """
    if at is None:
        return Markup('<span class="mut">{}</span>').format(NOTHING)
    utc = at.astimezone(UTC)
    shown = f"{utc if zone is None else wall(at, zone):%Y-%m-%d %H:%M:%S}"
    named = f"{shown} UTC" if zone is None else f"{shown}{offset(at, zone)} {zone.name}"
    iso = utc.isoformat().replace("+00:00", "Z")
    if now is None:
        return Markup('<time datetime="{}" title="{}">{}</time>').format(iso, named, shown)
    apart = (now - at) // _SECOND
    text = f"{whole_seconds(apart)} ago" if apart >= 0 else f"in {whole_seconds(-apart)}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso, named, text)


def clock(at: datetime, zone: Zone | None = None) -> str:
    """Return the time of day by the clocks of a zone, else in UTC, to the millisecond."""
    return f"{at.astimezone(UTC) if zone is None else wall(at, zone):%H:%M:%S.%f}"[:-3]


def pretty(value: Any) -> str:
    """Return what JSON can hold as text of several lines, with secrets hidden."""
    return json.dumps(redacted_value("", value), indent=2, ensure_ascii=False, default=str)


def flat(value: Any) -> str:
    """Return an object of few names as words."""
    if not isinstance(value, dict):
        return pretty(value)
    pairs = redacted_value("", value).items()
    return ", ".join(f"{name}: {NOTHING if one is None else one}" for name, one in pairs)


def step(event: str, state: str) -> str:
    """Return what an action makes of a job: ``pending → cancelled``."""
    targets = sorted(allowed(State(state), Event(event)))
    return f"{state} → {' or '.join(targets)}"


def may(event: str, state: str) -> bool:
    """Return whether an action can happen to a job in a state."""
    return bool(allowed(State(state), Event(event)))
