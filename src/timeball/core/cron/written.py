"""Instants as people write them: with an offset, in a zone, or by the clocks of the usual one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from timeball.core.cron.zone import Zone
from timeball.core.cron.zonedata import load_zone
from timeball.errors import UsageError

_INSTANT: Final = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of wall times, which have no zone
_DAY_S: Final = 86_400


def instant_of(text: str, usual_tz: Callable[[], str]) -> datetime:
    """Return the instant that a text names, aware.

    Args:
        text: ISO 8601, such as 2026-12-24T09:00+01:00, …Z, or …[Europe/Berlin].
        usual_tz: Tells the zone of a text that says neither offset nor zone.

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
        return _at_wall(read, load_zone(found[2] or usual_tz()))
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
    try:
        whole = datetime.fromtimestamp(fits[0], UTC)
    except (OverflowError, ValueError):  # by the clocks of UTC it is beyond all calendars
        raise UsageError(
            f"{wall.isoformat()} is out of range: write a year from 2 to 9998"
        ) from None
    return whole + timedelta(microseconds=wall.microsecond)
