"""Fires the occurrences of schedules. Any number of tickers may do so at once.

A tick reads what is due by the store's clock, computes outside any lock, and writes
with a compare-and-set on what it read: whoever comes second writes nothing. A crash
between the reading and the writing leaves the schedule as due as it was. The clock of
this machine is never asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event
from typing import Final, NamedTuple

from timeball.core.cron import Zone, load_zone
from timeball.core.cron.zonedata import version_key
from timeball.core.misfire import MisfireRule, plan
from timeball.core.records import Decision, Firing, Schedule
from timeball.core.standing import carried_over, standing
from timeball.errors import StoreUnavailable
from timeball.store.base import Store
from timeball.worker.agendas import Agendas
from timeball.worker.zone_watch import ZoneWatch

BATCH: Final = 500
"""Schedules in one tick."""

DECISIONS: Final = 2_000
"""After so many decisions a tick leaves the rest to the next one."""

DEFERENCE: Final = timedelta(seconds=60)
"""How long a schedule is left to nodes with newer zone data."""

_RETRY_S = 1.0
# All that computing can raise, ours (a UsageError is a ValueError) and Python's own.
_UNCOMPUTABLE = (ValueError, ArithmeticError, LookupError, TypeError)

_log = logging.getLogger(__name__)


def _nobody(schedule: str, decision: Decision, count: int) -> None:
    pass


class Tick(NamedTuple):
    """What one tick did."""

    jobs: int
    """Jobs that were added."""

    rest_s: float
    """How long nothing can fall due: 0 if something is due already."""


class Ticker:
    """Decides every occurrence that has fallen due, each exactly once over all tickers."""

    def __init__(
        self,
        store: Store,
        zones: Callable[[str], Zone] = load_zone,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        told: Callable[[str, Decision, int], None] = _nobody,
    ) -> None:
        """Make one of any number of tickers.

        Args:
            store: Where the schedules are, and whose clock counts.
            zones: Gives a time zone by its name.
            monotonic: This machine's stopwatch.
            told: Told how many occurrences of which schedule it has fired, or skipped.
        """
        self._store = store
        self._told = told
        self._monotonic = monotonic
        self._agendas = Agendas(zones)
        self._watch = ZoneWatch(store, self._agendas, monotonic)

    def run(self, stop: Event) -> None:
        """Tick until `stop` is set, whatever becomes of the store meanwhile."""
        rest_s = 0.0
        while not stop.wait(rest_s):
            try:
                rest_s = self.tick().rest_s
            except StoreUnavailable as error:
                _log.warning("schedules wait for the store: %s", error)
                rest_s = _RETRY_S

    def tick(self) -> Tick:
        """Decide what is due: for each schedule a bounded number of occurrences.

        Raises:
            StoreUnavailable: What has not been decided is still due.
        """
        more = self._watch.look()
        self._store.admit(BATCH)
        asked_at, broken = self._monotonic(), list[tuple[Schedule, str]]()
        now, due, answers = self._store.fire_due(
            BATCH, lambda now, due: self._decided(due, now, broken)
        )
        for schedule, error in broken:
            _log.error("schedule %s is suspended: %s", schedule.spec.name, error)
            self._store.suspend(schedule, error)
        jobs = sum(self._tell(firing, made) for firing, made in answers if made is not None)
        done = [firing for firing, made in answers if made is not None]
        left = due == BATCH or len(answers) + len(broken) < due
        if more or (done and left) or any(_is_due(firing, now) for firing in done):
            return Tick(jobs, 0.0)
        # Occurrences lie on whole seconds, so nothing falls due before the next one.
        rest_s = 1 - now.microsecond / 1e6 - (self._monotonic() - asked_at)
        return Tick(jobs, max(0.0, rest_s))

    def _tell(self, firing: Firing, made: list[int]) -> int:
        """Tell of decisions that were written; return how many jobs they have made."""
        name, skipped = firing.schedule.spec.name, len(firing.decisions) - len(made)
        for decision, count in ((Decision.FIRED, len(made)), (Decision.SKIPPED, skipped)):
            if count:
                self._told(name, decision, count)
        return len(made)

    def _decided(
        self, due: list[Schedule], now: datetime, broken: list[tuple[Schedule, str]]
    ) -> list[Firing]:
        """Decide the occurrences of each schedule; a broken one stops nobody else."""
        firings: list[Firing] = []
        decisions = 0
        for schedule in due:
            if decisions >= DECISIONS:
                break
            try:
                found = self._plan(schedule, now)
            except _UNCOMPUTABLE as error:
                broken.append((schedule, str(error) or type(error).__name__))
                continue
            except OSError as error:  # this machine's trouble, not the schedule's
                _log.warning("schedule %s waits for its zone data: %s", schedule.spec.name, error)
                continue
            if found is not None:
                firings.append(found)
                decisions += len(found.decisions)
        return firings

    def _plan(self, schedule: Schedule, now: datetime) -> Firing | None:
        agenda = self._agendas.of(schedule.spec)
        newer = version_key(schedule.zone_version) > version_key(agenda.zone.version)
        if newer and schedule.due_at and now - schedule.due_at < DEFERENCE:
            return None  # somebody has newer zone data
        carried = carried_over(schedule, agenda)
        if carried is not None:
            return carried
        made = plan(schedule, agenda, now, rule=_rule(schedule))
        return Firing(schedule, made.decisions, standing(agenda, made.cursor))


def _rule(schedule: Schedule) -> MisfireRule:
    spec = schedule.spec
    return MisfireRule(
        window=timedelta(seconds=spec.catchup_window_s),
        limit=spec.catchup_limit,
        grace=timedelta(seconds=spec.grace_s),
    )


def _is_due(firing: Firing, now: datetime) -> bool:
    """Return whether the next occurrence after a firing has come already."""
    due_at = firing.standing.due_at
    return due_at is not None and due_at <= now
