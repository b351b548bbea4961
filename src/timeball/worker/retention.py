"""Deletes jobs that ended long ago: little by little, and only in what time is left over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event

from timeball.core.upkeep import Keep
from timeball.errors import StoreUnavailable
from timeball.store.base import Store

BATCH = 500
"""Jobs looked at in one transaction."""

_SHARE = 5
_REST_MIN_S = 0.05
_ROUND_S = 60.0
_FIRST_S = 1.0

_log = logging.getLogger(__name__)


class Retention:
    """Goes through all jobs by id, round after round; any number may do so at once.

    Args:
        store: Where the jobs are.
        keep: How long to keep those that have ended.
        monotonic: This machine's stopwatch.
    """

    def __init__(
        self, store: Store, keep: Keep, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._keep = keep
        self._monotonic = monotonic
        self._after: tuple[int, ...] = ()

    def run(self, stop: Event) -> None:
        """Delete until `stop` is set, whatever becomes of the store meanwhile."""
        rest_s = _FIRST_S
        while not stop.wait(rest_s):
            try:
                rest_s = self.look()
            except StoreUnavailable as error:
                _log.warning("old jobs wait for the store: %s", error)
                rest_s = _ROUND_S

    def look(self) -> float:
        """Delete what is old among the next few jobs; return for how long to rest.

        A look takes at most a fifth of the time: the store is there for the workers.

        Raises:
            StoreUnavailable: The next look is at the same jobs.
        """
        began_at = self._monotonic()
        trimmed = self._store.trim(self._keep, after=self._after, limit=BATCH)
        self._after = trimmed.after or ()
        if trimmed.after is None:
            return _ROUND_S
        return max(_REST_MIN_S, (_SHARE - 1) * (self._monotonic() - began_at))
