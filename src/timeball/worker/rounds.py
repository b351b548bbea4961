"""Duties that are one question to the store, asked again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final

from timeball.errors import StoreUnavailable
from timeball.store.base import Store

BATCH: Final = 1_000
"""So many are seen to in one transaction."""

_log = logging.getLogger(__name__)


class Rounds:
    """Asks at intervals, and again at once while there is more.

    Args:
        ask: Sees to so many, at most, and returns how many there were.
        rest_s: Seconds between two questions.
        who: Who waits while the store is away.
    """

    def __init__(self, ask: Callable[[int], int | None], rest_s: float, who: str) -> None:
        self._ask, self._rest_s, self._who = ask, rest_s, who

    def run(self, stop: Event) -> None:
        """Ask until `stop` is set, whatever becomes of the store meanwhile."""
        rest_s = self._rest_s
        while not stop.wait(rest_s):
            try:
                rest_s = 0.0 if self._ask(BATCH) == BATCH else self._rest_s
            except StoreUnavailable as error:
                _log.warning("%s wait for the store: %s", self._who, error)
                rest_s = self._rest_s


def deadlines(store: Store) -> Rounds:
    """Skip jobs that are late and have not begun, where no claim comes by; none grants them."""
    return Rounds(store.lapse, 1.0, "deadlines")


def linking(store: Store) -> Rounds:
    """Link edges; a client links what it submits itself, unless it dies before."""
    return Rounds(store.link, 0.5, "jobs that come after others")
