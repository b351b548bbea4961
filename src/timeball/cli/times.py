"""Durations, instants and zones, as people write them on a command line."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from timeball.chance import system_zone
from timeball.core.cron.written import instant_of
from timeball.errors import UsageError

_UNITS_S: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+", re.ASCII)
_PART: Final = re.compile(r"([\d.]+)([dhms])", re.ASCII)


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
    return instant_of(text, lambda: default_tz or system_zone())
