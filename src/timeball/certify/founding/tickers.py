"""F, first half: several tickers evaluate one occurrence, and a clock that goes back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from timeball.certify.pooler import pooled
from timeball.certify.queries import query
from timeball.certify.scenario import Skipped
from timeball.certify.sessions import Refused
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.records import Decision, Fired, Firing, Schedule
from timeball.core.standing import standing
from timeball.errors import StoreUnavailable
from timeball.store.base import Decide, JobFilter, Store
from timeball.store.postgres import PostgresStore
from timeball.worker.ticker import Ticker

NAME: Final = "hourly"
NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_HOUR: Final = timedelta(hours=1)
_MOMENT: Final = timedelta(seconds=1)
_LIMIT: Final = 100


class Meanwhile:
    """A store that lets something happen when a ticker has decided, before that is written.

    Args:
        store: What carries out the verbs.
        happens: What happens; the schedules that are due are locked then.
        keeps: Whether nothing is written afterwards: what was decided is kept instead.
    """

    def __init__(
        self, store: PostgresStore, happens: Callable[[], None], *, keeps: bool = False
    ) -> None:
        self._store = store
        self._happens = happens
        self._keeps = keeps
        self.decided: list[Firing] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def fire_due(self, limit: int, decide: Decide) -> Fired:
        """See `Store.fire_due`."""

        def decides(now: datetime, due: list[Schedule]) -> list[Firing]:
            self.decided = decide(now, due)
            self._happens()
            return [] if self._keeps else self.decided

        return self._store.fire_due(limit, decides)


class Tickers:
    """One schedule of every full hour, and those that fire it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.other = Ticker(stage.store)
        self.met = 0
        """How often one ticker looked while another one was at the schedule."""

        stage.travel(NOON - _HOUR + _MOMENT)
        spec = schedule_spec(NAME, KIND, cron="0 * * * *", tz="UTC", catchup="all")
        stage.store.declare(spec, standing(agenda_of(spec), stage.store.now()))

    def fired(self) -> dict[str, int]:
        """Return how often it is on record that each occurrence fired, by its hour."""
        told = self.stage.store.occurrences(NAME, limit=_LIMIT)
        fired = [each for each in told if each.decision is Decision.FIRED]
        hours = [each.nominal_at.strftime("%H:%M") for each in fired]
        return {hour: hours.count(hour) for hour in sorted(hours)}

    def jobs(self) -> int:
        """Return how many jobs there are of the schedule's kind, in its queue."""
        wanted = JobFilter(kind=KIND, queue="default", limit=_LIMIT)
        return len(self.stage.store.jobs(wanted))

    def at_once(self) -> dict[str, int]:
        """Have one tick while another one has decided and not yet written."""
        self.stage.travel(NOON + _MOMENT)
        return self._at_once(self.stage.store, self.other)

    def at_once_pooled(self) -> dict[str, int]:
        """Do the same behind a pooling proxy.

        Raises:
            Skipped: There is none on this machine, or the server is not ours to put it before.
        """
        if self.stage.terms.own_server is None:
            raise Skipped("a proxy is put before certify's own server only: leave --dsn out")
        self.stage.travel(NOON + 4 * _HOUR + _MOMENT)
        with pooled(self.stage.dsn) as proxy, ExitStack() as stack:
            one, two = (stack.enter_context(closing(PostgresStore(proxy.dsn))) for _ in range(2))
            return self._at_once(one, Ticker(two))

    def _at_once(self, store: PostgresStore, other: Ticker) -> dict[str, int]:
        jobs: dict[str, int] = {}

        def happens() -> None:
            step = self.stage.session().step(query("lock_schedule"), {"name": NAME})
            self.met += isinstance(step, Refused)
            jobs["the second"] = other.tick().jobs

        jobs["the first"] = _ticker(Meanwhile(store, happens)).tick().jobs
        return jobs

    def stopped(self) -> dict[str, object]:
        """Have one stand still with what it has decided; end its session; another one fires."""
        self.stage.travel(NOON + _HOUR + _MOMENT)
        told: dict[str, object] = {}

        def happens() -> None:
            own = [self.stage.watcher.info.backend_pid]
            for (pid,) in self.stage.ask("open_transactions", own=own):
                self.stage.ask("end_session", pid=pid)
                self.met += 1
            told["the other"] = self.other.tick().jobs

        with closing(PostgresStore(self.stage.dsn)) as store:
            ticker = _ticker(Meanwhile(store, happens))
            try:
                told["the one that stood still"] = ticker.tick().jobs
            except StoreUnavailable:
                told["the one that stood still"] = "refused"
            told["once more"] = ticker.tick().jobs
        return told

    def stale(self) -> dict[str, object]:
        """Have one write what it decided before another one fired: compare and set refuses."""
        self.stage.travel(NOON + 2 * _HOUR + _MOMENT)
        slow = Meanwhile(self.stage.store, lambda: None, keeps=True)
        _ticker(slow).tick()
        quick = self.other.tick().jobs
        answer = self.stage.store.fire(slow.decided)
        self.met += len(slow.decided)
        return {"the quick one": quick, "the slow one": "refused" if answer == [None] else answer}

    def clock_back(self) -> list[int]:
        """Set the database's clock back by an hour after firing; return what each tick fires."""
        hours = (2, 1, 2, 3)
        jobs = []
        for hour in hours:
            self.stage.travel(NOON + hour * _HOUR + 2 * _MOMENT)
            jobs.append(self.other.tick().jobs)
        return jobs


def _ticker(store: Meanwhile) -> Ticker:
    return Ticker(cast("Store", store))  # which passes on all else
