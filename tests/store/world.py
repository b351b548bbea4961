"""A store with its clock and the few phrases in which the suite speaks to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from timeball.core.audit import audit, audit_schedules, stray_violations
from timeball.core.limits import limit_violations
from timeball.core.records import (
    Firing,
    Job,
    JobSpec,
    Schedule,
    ScheduleSpec,
    Settlement,
    Turn,
    Verdict,
)
from timeball.core.states import Ending, State
from timeball.store.base import Store
from timeball.store.memory import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def end(turn: Turn, ending: Ending = Ending.SUCCEEDED, *, began: bool = True, **how) -> Settlement:
    """How a turn ended; it began when it was granted, if it did at all."""
    began_at = turn.granted_at if began else None
    return Settlement(*turn[:4], ending, began_at=began_at, **how)


def schedule(name: str = "hourly", **fields) -> ScheduleSpec:
    words = {"kind": "a", "expression": "0 * * * *", "tz": "UTC"}
    rules = {"gap": "next_valid", "overlap": "first", "source": "app"}
    return ScheduleSpec(name=name, **{**words, **rules, **fields})


class World:
    """One store, empty at first, whose clock the test can move."""

    def __init__(self, store: Store, travel: Callable[[timedelta], None]) -> None:
        self.store = store
        self._travel = travel
        self._first: dict[tuple[int, int], int] = {}

    def close(self) -> None:
        if hasattr(self.store, "close"):
            self.store.close()

    def travel(self, seconds: float) -> None:
        self._travel(timedelta(seconds=seconds))

    def later(self, seconds: float) -> datetime:
        return self.store.now() + timedelta(seconds=seconds)

    def submit(self, kind: str = "a", **fields) -> UUID:
        spec = JobSpec(uuid=fields.pop("uuid", None) or uuid4(), kind=kind, **fields)
        self.store.submit([spec])
        return spec.uuid

    def worker(self, *kinds: str, queues: Sequence[str] = ("default",)) -> int:
        return self.store.register("w", kinds=kinds or ("a",), queues=queues, lease_s=30.0)

    def claim(self, worker: int, limit: int = 1_000) -> list[Turn]:
        """Claim until `limit` turns are granted or none is left."""
        turns: list[Turn] = []
        while len(turns) < limit:
            more = self.ask(worker, limit - len(turns), uuid4())
            turns += more
            if not more:
                break
        return turns

    def ask(self, worker: int, limit: int, request: UUID) -> list[Turn]:
        """Claim once, stating that nothing granted so far has ended."""
        floors = {lane: seq for (who, lane), seq in self._first.items() if who == worker}
        turns = self.store.claim(worker, limit=limit, request=request, floors=floors)
        for turn in turns:
            self._first.setdefault((worker, turn.lane), turn.seq)
        return turns

    def settle(self, worker: int, *settlements: Settlement) -> list[Verdict]:
        return self.store.settle(worker, settlements)

    def start(self, worker: int, kind: str = "a", **fields) -> Turn:
        """Submit one job and claim it."""
        uuid = self.submit(kind, **fields)
        (turn,) = self.claim(worker)
        assert turn.uuid == uuid
        return turn

    def due(self, limit: int = 10) -> tuple[datetime, list[Schedule]]:
        """The clock, and the schedules that are due by it."""
        seen: list[Schedule] = []

        def look(_: datetime, due: list[Schedule]) -> list[Firing]:
            seen.extend(due)
            return []

        return self.store.fire_due(limit, look).now, seen

    def job(self, job: UUID | Turn) -> Job:
        return self.store.get(job if isinstance(job, UUID) else job.uuid)

    def state(self, job: UUID | Turn) -> State:
        return self.job(job).state

    def order(self, worker: int) -> list[UUID]:
        """The order in which all that is pending would start."""
        return [turn.uuid for turn in self.claim(worker)]

    def stale(self) -> int:
        """How many settlements are on record as refused."""
        return sum(len(history.stale) for history in self.store.histories())

    def violations(self, *, quiesced: bool = False) -> list[str]:
        """What the audit has against the record."""
        report = audit(self.store.histories(), quiesced=quiesced)
        # Instants of the schedules are made up by the tests: none is expected.
        schedules = audit_schedules(self.store.schedule_histories(), lambda _: ())
        report = report.including(limit_violations(self.store.holdings()))
        report = report.including(stray_violations(self.store.strays()))
        return [*map(str, report.violations), *(str(v) for v in schedules if v.invariant == "I16")]


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at

    def move(self, by: timedelta) -> None:
        self.at += by


def memory_world() -> World:
    clock = Clock()
    return World(MemoryStore(clock), clock.move)


def uuids(turns: Collection[Turn]) -> list[UUID]:
    return [turn.uuid for turn in turns]
