"""A doorbell: anybody may ring, one loop waits."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

_WAIT_MAX_S: Final = 3600.0


class Doorbell:
    """Wakes one waiting loop. Rings that come before it waits are not lost; several count as one.

    `ring` takes no lock that its own caller could hold already, so signal handlers,
    finalizers and other threads may all ring.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()
        self._ringing = False

    def ring(self) -> None:
        """End the present or the next wait."""
        if not self._ringing:
            self._ringing = True
            self._rings.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait for a ring, at most so long; then look at everything that a ring may be about."""
        with suppress(Empty):
            self._rings.get(timeout=min(max(0.0, timeout_s), _WAIT_MAX_S))
        # Only now may it ring anew: whoever found it ringing has changed something before this.
        self._ringing = False
