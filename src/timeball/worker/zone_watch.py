"""Takes schedules over to newer zone data before they fire by the old ones.

An occurrence that the new data put earlier would otherwise come late. Of nodes with
different data the newer ones count; with the older ones nobody goes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from timeball.core.cron.zonedata import version_key
from timeball.core.records import Firing, ZoneUse
from timeball.core.standing import carried_over
from timeball.errors import UsageError
from timeball.store.base import Store
from timeball.worker.agendas import Agendas

EVERY_S: Final = 60.0
BATCH: Final = 500

_log = logging.getLogger(__name__)


class ZoneWatch:
    """Looks now and then whether schedules were computed from older zone data than ours."""

    def __init__(self, store: Store, agendas: Agendas, monotonic: Callable[[], float]) -> None:
        self._store = store
        self._agendas = agendas
        self._monotonic = monotonic
        self._look_at = monotonic()

    def look(self) -> bool:
        """Carry over some schedules, if it is time; return whether there are more."""
        if self._monotonic() < self._look_at:
            return False
        for use in self._store.zones():
            if self._older(use) and self._carry_over(use):
                return True
        self._look_at = self._monotonic() + EVERY_S
        return False

    def _older(self, use: ZoneUse) -> bool:
        try:
            ours = self._agendas.zones(use.tz).version
        except (UsageError, OSError):
            return False  # told where a schedule of it falls due
        return version_key(use.zone_version) < version_key(ours)

    def _carry_over(self, use: ZoneUse) -> bool:
        """Carry over some schedules; return whether any of them is."""
        firings: list[Firing] = []
        for schedule in self._store.in_zone(use, BATCH):
            try:
                found = carried_over(schedule, self._agendas.of(schedule.spec))
            except ValueError as error:
                self._store.suspend(schedule, str(error))
                continue
            firings += [] if found is None else [found]
        moved = sum(each.moved for each in firings)
        if moved:
            _log.warning("%s: newer zone data move %d schedules", use.tz, moved)
        return any(made is not None for made in self._store.fire(firings))
