"""The wall clock, its zone and the dice: what the core must be handed, read in this one place."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from timeball.errors import InvalidSchedule, UsageError

_LOCALTIME: Final = Path("/etc/localtime")
_ZONE_FOLDER: Final = "/zoneinfo/"

draw = random.random
"""Return a number in ``[0, 1)``. For jitter, never for secrets."""


def now() -> datetime:
    """Return this machine's wall clock, aware, in UTC. The store's clock is what counts."""
    return datetime.now(UTC)


def new_uuid() -> UUID:
    """Return a UUID of version 7 (RFC 9562): new ones sort last, so that an index grows at its end.

    48 bits of milliseconds, then 74 random bits.
    """
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def system_zone() -> str:
    """Return the name of this machine's time zone: `TZ`, else that of /etc/localtime, else UTC.

    Raises:
        UsageError: `TZ` is set and is not the name of a zone.
    """
    from timeball.core.cron import load_zone  # most who ask for the time need no zones

    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        try:
            load_zone(named)
        except InvalidSchedule as error:
            raise UsageError(f"TZ={named}: {error}; or pass --tz") from error
        return named
    _, folder, name = str(_LOCALTIME.resolve()).partition(_ZONE_FOLDER)
    try:
        load_zone(name if folder else "UTC")
    except InvalidSchedule:
        return "UTC"
    return name if folder else "UTC"
