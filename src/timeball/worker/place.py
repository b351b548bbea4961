"""Room for one child of a supervisor, which is filled again when the child has died."""

from __future__ import annotations

from typing import Final

from timeball.worker.process import ChildProcess

BACKOFF_MIN_S: Final = 0.1
BACKOFF_MAX_S: Final = 10.0
SETTLED_S: Final = 60.0
"""A child that has lived so long is no part of a series of deaths."""


class Place:
    """Room for one child, and how its last ones fared."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.child: ChildProcess | None = None
        self.next_at = 0.0
        self._backoff_s = BACKOFF_MIN_S

    def vacate(self, now: float, lived_s: float) -> None:
        """Let the next child come after a while, that grows if the last ones did not live long."""
        if lived_s >= SETTLED_S:
            self._backoff_s = BACKOFF_MIN_S
        self.next_at = now + self._backoff_s
        self._backoff_s = min(BACKOFF_MAX_S, 2 * self._backoff_s)
        self.child = None
