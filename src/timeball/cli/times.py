"""Durations, instants and zones, as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from timeball.chance import system_zone
from timeball.core.cron import Zone, load_zone
from timeball.errors import UsageError

_UNITS_S: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+", re.ASCII)
_PART: Final = re.compile(r"([\d.]+)([dhms])", re.ASCII)
_INSTANT: Final = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of wall times, which have no zone
_DAY_S: Final = 86_400


def seconds(text: str, *, least_s: float = 0.0) -> float:
    """Return the seconds of a duration such as 90, 90s, 5m or 1h30m.

    Raises:
        UsageError: It is none, or shorter than `least_s`.
    """
    if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII):
        found = float(text)
    elif _DURATION.fullmatch(text):
        found = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    else:
        raise UsageError(f"{text!r} is no duration: write for example 90s, 5m or 1h30m")
    if found < least_s:
        raise UsageError(f"{text} is too short: write {least_s:g}s or more")
    return found


def ago(text: str, now: datetime) -> datetime:
    """Return the instant that a text names, or that is as long ago as it says.

    Raises:
        UsageError: It is neither; the text says what to write.
    """
    if re.fullmatch(r"[\d.dhms]+", text, re.ASCII):
        return now - timedelta(seconds=seconds(text))
    return instant(text)


def instant(text: str, default_tz: str | None = None) -> datetime:
    """Return the instant that a text names, aware.

    Args:
        text: ISO 8601, such as 2026-12-24T09:00+01:00, …Z, or …[Europe/Berlin].
        default_tz: The zone of a text that says neither offset nor zone; None for this
            machine's.

    Raises:
        UsageError: It is none, does not exist, or comes twice; the text says what to write.
    """
    found = _INSTANT.fullmatch(text.strip())
    try:
        read = datetime.fromisoformat(found[1] if found else "")
    except ValueError:
        raise UsageError(
            f"{text!r} is no instant: write for example 2026-12-24T09:00Z, "
            "2026-12-24T09:00+01:00 or 2026-12-24T09:00[Europe/Berlin]"
        ) from None
    assert found is not None
    if read.tzinfo is None:
        return _at_wall(read, load_zone(found[2] or default_tz or system_zone()))
    offset = read.utcoffset()
    if found[2] and offset != timedelta(seconds=load_zone(found[2]).offset(int(read.timestamp()))):
        raise UsageError(f"{text!r}: {found[2]} has another offset then; leave one of the two out")
    return read


def _at_wall(wall: datetime, zone: Zone) -> datetime:
    """Return the one instant at which the clocks of a zone show `wall`."""
    shown = (wall - _EPOCH) // timedelta(seconds=1)
    near = {zone.offset(shown + days * _DAY_S) for days in (-2, 0, 2)}
    fits = sorted(shown - offset for offset in near if zone.offset(shown - offset) == offset)
    if len(fits) != 1:
        trouble = "comes twice" if fits else "does not exist"
        raise UsageError(f"{wall.isoformat()} {trouble} in {zone.name}: write it with its offset")
    return datetime.fromtimestamp(fits[0], UTC) + timedelta(microseconds=wall.microsecond)
