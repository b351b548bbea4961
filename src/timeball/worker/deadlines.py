"""Skips jobs whose deadline has passed before they began, where no claim comes by."""

from __future__ import annotations

import logging
from threading import Event

from timeball.errors import StoreUnavailable
from timeball.store.base import Store

BATCH = 1_000
"""Jobs skipped in one transaction."""

_REST_S = 1.0

_log = logging.getLogger(__name__)


class Deadlines:
    """Looks every second. No claim grants a late job: this is for those who wait for its end."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, stop: Event) -> None:
        """Look until `stop` is set, whatever becomes of the store meanwhile."""
        rest_s = _REST_S
        while not stop.wait(rest_s):
            try:
                rest_s = 0.0 if self._store.lapse(BATCH) == BATCH else _REST_S
            except StoreUnavailable as error:
                _log.warning("deadlines wait for the store: %s", error)
                rest_s = _REST_S
