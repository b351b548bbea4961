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
from datetime import datetime
from functools import lru_cache
from threading import Event
from typing import Final, NamedTuple

from timeball.core.cron import Gap, Overlap, Timetable, Zone, load_zone, parse
from timeball.core.misfire import MisfireRule, plan
from timeball.core.records import Firing, Schedule, Standing
from timeball.errors import StoreUnavailable
from timeball.store.base import Store

BATCH: Final = 100
"""Schedules in one tick."""

_TIMETABLES = 1_024
_RETRY_S = 1.0
# All that computing can raise, ours (a UsageError is a ValueError) and Python's own.
_UNCOMPUTABLE = (ValueError, ArithmeticError, LookupError, TypeError)

_log = logging.getLogger(__name__)


class Tick(NamedTuple):
    """What one tick did."""

    jobs: int
    """Jobs that were added."""

    rest_s: float
    """How long nothing can fall due: 0 if something is due already."""


class _Done(NamedTuple):
    """What was done about one schedule."""

    jobs: int
    next_at: datetime | None


class Ticker:
    """Decides every occurrence that has fallen due, each exactly once over all tickers."""

    def __init__(
        self,
        store: Store,
        zones: Callable[[str], Zone] = load_zone,
        *,
        rule: MisfireRule | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make one of any number of tickers.

        Args:
            store: Where the schedules are, and whose clock counts.
            zones: Gives a time zone by its name.
            rule: How far back missed occurrences are caught up; None for the defaults.
            monotonic: This machine's stopwatch.
        """
        self._store = store
        self._zones = zones
        self._rule = rule
        self._monotonic = monotonic
        self._timetable = lru_cache(_TIMETABLES)(self._compute)

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
        now, due = self._store.due_schedules(BATCH)
        asked_at = self._monotonic()
        made = [done for schedule in due if (done := self._decide(schedule, now))]
        jobs = sum(done.jobs for done in made)
        if len(made) == BATCH or any(done.next_at and done.next_at <= now for done in made):
            return Tick(jobs, 0.0)
        # Occurrences lie on whole seconds, so nothing falls due before the next one.
        rest_s = 1 - now.microsecond / 1e6 - (self._monotonic() - asked_at)
        return Tick(jobs, max(0.0, rest_s))

    def _decide(self, schedule: Schedule, now: datetime) -> _Done | None:
        """Decide the occurrences of one schedule; a broken one stops nobody else."""
        spec = schedule.spec
        try:
            timetable = self._timetable(spec.expression, spec.tz, spec.gap, spec.overlap)
            made = plan(
                schedule,
                timetable.following(schedule.cursor),
                now,
                describe=timetable.describe,
                rule=self._rule,
            )
        except _UNCOMPUTABLE as error:
            _log.error("schedule %s is suspended: %s", spec.name, error)
            self._store.suspend(schedule, str(error) or type(error).__name__)
            return _Done(0, None)
        except OSError as error:  # this machine's trouble, not the schedule's
            _log.warning("schedule %s waits for its zone data: %s", spec.name, error)
            return None
        standing = Standing(made.cursor, made.next_at)
        (jobs,) = self._store.fire([Firing(schedule, made.decisions, standing)])
        return _Done(len(jobs or ()), made.next_at)

    def _compute(self, expression: str, tz: str, gap: str, overlap: str) -> Timetable:
        return Timetable(parse(expression), self._zones(tz), Gap(gap), Overlap(overlap))
