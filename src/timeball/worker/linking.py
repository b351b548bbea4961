"""Links edges whose children were submitted inside a caller's own transaction."""

from __future__ import annotations

import logging
from threading import Event

from timeball.errors import StoreUnavailable
from timeball.store.base import Store

BATCH = 1_000
"""Edges linked in one transaction."""

_REST_S = 0.5

_log = logging.getLogger(__name__)


class Linking:
    """Looks twice a second: a client links what it submits itself, unless it dies before."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, stop: Event) -> None:
        """Look until `stop` is set, whatever becomes of the store meanwhile."""
        rest_s = _REST_S
        while not stop.wait(rest_s):
            try:
                rest_s = 0.0 if self._store.link(BATCH) == BATCH else _REST_S
            except StoreUnavailable as error:
                _log.warning("jobs that come after others wait for the store: %s", error)
                rest_s = _REST_S
