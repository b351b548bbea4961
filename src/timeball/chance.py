"""The wall clock and the dice: what the core must be handed, read in this one place."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from uuid import UUID

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
