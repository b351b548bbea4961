"""What every two verbs find: jobs in each state, batches, edges, schedules, limits and workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

from timeball.certify.stage import Stage
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.batches import BATCH, batch_args
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import Edge, Rule, RuledOut
from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.records import Firing, JobSpec, Schedule, Settlement, Standing, Turn
from timeball.core.standing import standing
from timeball.core.states import Ending
from timeball.store.base import Store
from timeball.worker.ticker import Ticker

KIND: Final = "a"
NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_NAMES: Final = UUID("5a1a8f1c-6f0e-4bb0-a0f4-3f2f0b1f6c11")
_MINUTE: Final = timedelta(minutes=1)
_AT_ONCE: Final = 30


def uuid_of(name: str) -> UUID:
    """Return the uuid of the job, batch or request of that name."""
    return uuid5(_NAMES, name)


def spec_of(name: str, **fields: Any) -> JobSpec:
    """Return a job of that name."""
    return JobSpec(uuid=uuid_of(name), kind=KIND, **fields)


def batch_of(name: str, *members: str, is_open: bool = False) -> JobSpec:
    """Return a batch of jobs that are there, or come before it in the same submission."""
    return JobSpec(
        uuid=uuid_of(name), kind=BATCH, args=batch_args(name, is_open=is_open),
        after=tuple(Edge(uuid_of(each), Rule.MEMBER) for each in members),
        ruled_out=RuledOut.RUN,
    )  # fmt: skip


def called(name: str, expires_at: datetime) -> JobSpec:
    """Return a callback of that name."""
    return JobSpec(uuid=uuid_of(name), kind=CALLBACK, expires_at=expires_at)


def decided(store: Store) -> Callable[[datetime, list[Schedule]], list[Firing]]:
    """Return what decides as a ticker does."""
    ticker = Ticker(store)
    return lambda now, due: ticker._decided(due, now, [])  # noqa: SLF001 - without its rounds


def standing_at(schedule: Schedule, at: datetime) -> Standing:
    """Return how a schedule stands at an instant."""
    return standing(agenda_of(schedule.spec), at)


class Scene:
    """Makes it, and remembers what verbs have to be told."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.store = stage.store
        self.turns: dict[str, Turn] = {}
        """Turns that run, by the names of their jobs."""

        self.schedules: dict[str, Schedule] = {}
        """As somebody has read them."""

        self.firings: tuple[Firing, ...] = ()
        """What somebody has decided and not yet written."""

        stage.travel(NOON)
        register: dict[str, Any] = {"kinds": [KIND], "queues": ["default", "mail"], "lease_s": 30.0}
        self.worker = self.store.register("works", **register)
        self.dying = self.store.register("dies", **register)
        self.idle = self.store.register("is idle", **register)
        self._limits()
        self._ended()
        self._schedules()
        self._running()
        self._waiting()
        stage.travel(NOON + 3 * _MINUTE)
        self.schedules = {each.spec.name: each for each in self.store.schedules()}
        due = [each for each in self.schedules.values() if each.due_at and each.due_at <= self.now]
        self.firings = tuple(decided(self.store)(self.now, due))

    def names(self) -> dict[UUID, str]:
        """Return what jobs and requests are called, where they have a name."""
        return {uuid_of(name): name for name in self.turns}

    @property
    def now(self) -> datetime:
        """The clock, which stands still."""
        return NOON + 3 * _MINUTE

    def said(self, name: str, ending: Ending, **fields: Any) -> Settlement:
        """Return that the running turn of a job has ended so."""
        turn = self.turns[name]
        return Settlement(*turn[:4], ending, began_at=turn.granted_at, **fields)

    def _limits(self) -> None:
        self.store.limit(Scope.QUEUE, "default", _AT_ONCE)
        self.store.limit_starts(Scope.QUEUE, "mail", Rate(2, 60))

    def _submitted(self, *specs: JobSpec) -> None:
        self.store.submit(specs)

    def _run(self, worker: int, *specs: JobSpec) -> None:
        """Have some jobs run; each is alone in line."""
        for spec in specs:
            self._submitted(spec)
            turns = self.store.claim(worker, limit=1, request=uuid_of(f"of {spec.uuid}"), floors={})
            (self.turns[str(spec.uuid)],) = turns

    def _end(self, ending: Ending, *names: str) -> None:
        self._run(self.worker, *(spec_of(name) for name in names))
        self._name(*names)
        reason = None if ending is Ending.SUCCEEDED else "permanent"
        said = [self.said(name, ending, reason=reason) for name in names]
        self.store.settle(self.worker, said)

    def _name(self, *names: str) -> None:
        self.turns |= {name: self.turns.pop(str(uuid_of(name))) for name in names}

    def _ended(self) -> None:
        self._end(Ending.FAILED, "failed", "failed too", "of the old batch")
        self._end(Ending.SUCCEEDED, "succeeded")
        self._submitted(batch_of("old batch", "of the old batch"))

    def _schedules(self) -> None:
        for name, options in _SCHEDULES.items():
            spec = schedule_spec(name, KIND, tz="UTC", **options)
            self.store.declare(spec, standing(agenda_of(spec), NOON))
        self.store.pause("paused")
        for minutes in (1, 2):  # of the runs of one the first has ended, and the second waits
            self._stage.travel(NOON + minutes * _MINUTE)
            self.store.fire_due(10, decided(self.store))
        (turn,) = self.store.claim(
            self.worker, limit=1, request=uuid_of("of a schedule"), floors={}
        )
        ended = Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at)
        self.store.settle(self.worker, [ended])

    def _running(self) -> None:
        self._run(self.dying, spec_of("of the dying"))
        names = ("runs", "runs too", "spawns", "is a parent", "is a member")
        self._run(self.worker, *(spec_of(name) for name in names), spec_of("has the key", key="k"))
        self._name("of the dying", *names, "has the key")

    def _waiting(self) -> None:
        parents = (Edge(uuid_of("is a parent")), Edge(uuid_of("runs")))
        self._submitted(
            spec_of("is pending"), spec_of("is pending too"), spec_of("waits for the key", key="k"),
            spec_of("has a key", key="l"), spec_of("waits for that key", key="l"),
            spec_of("is scheduled", run_at=NOON + 2 * _MINUTE),
            spec_of("is scheduled late", run_at=NOON + 60 * _MINUTE),
            spec_of("is too late", expires_at=NOON + 2 * _MINUTE),
            spec_of("is a child", after=parents),
            spec_of("in the batch"), spec_of("in mail", queue="mail"),
            batch_of("batch", "is a member", "in the batch", is_open=True),
            called("is called", NOON + 60 * _MINUTE), called("is called late", NOON + 2 * _MINUTE),
            spec_of("waits for calls", after=tuple(
                Edge(uuid_of(each), Rule.ALL_DONE) for each in ("is called", "is called late"))),
        )  # fmt: skip


_SCHEDULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "due": {"cron": "3 * * * *", "source": "file"},
    "paused": {"cron": "0 * * * *"},
    "in line": {"cron": "1,2 12 * * *", "overlap_runs": "queue_one"},
    "replaces": {"cron": "3 * * * *", "overlap_runs": "replace"},
}
