"""Code that needs no database: the calendar, what was missed, and the watch over workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from timeball.action.registry import Registry
from timeball.certify.overlay import Overlay
from timeball.certify.probes.probe import CodeProbe
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import load_zone
from timeball.core.cron.parse import parse
from timeball.core.records import Decision
from timeball.core.standing import standing
from timeball.store.memory import MemoryStore
from timeball.worker.config import WorkerConfig

OCCURRENCES: Final = "timeball.core.cron.occurrences"
MISFIRE: Final = "timeball.core.misfire"
SWEEPER: Final = "timeball.worker.sweeper"
PERMITS: Final = "timeball.worker.permits"
LOOP: Final = "timeball.worker.loop"
_NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LEASE_S: Final = 10.0
_POLL_S: Final = 0.5
_RESTS: Final = 5


def _days(cron: str, start: str) -> Callable[[Overlay], list[str]]:
    """Return what tells the first three occurrences in New York after a day."""

    def told(copies: Overlay) -> list[str]:
        table = copies[OCCURRENCES].Timetable(parse(cron), load_zone("America/New_York"))
        return [f"{at:%m-%dT%H:%M}" for at in _three(table, datetime.fromisoformat(start))]

    return told


def _three(table: Any, after: datetime) -> Iterator[datetime]:
    at = int(after.timestamp())
    for _ in range(3):
        at = table.first(at + 1)
        yield datetime.fromtimestamp(at, UTC)


def _missed(copies: Overlay, **fields: Any) -> Any:
    """Return how many of five missed occurrences run, and how many were decided."""
    misfire = copies[MISFIRE]
    store = MemoryStore(lambda: _NOON)
    spec = schedule_spec("hourly", "a", cron="0 * * * *", tz="UTC", catchup="all")
    agenda = agenda_of(spec)
    store.declare(spec, standing(agenda, _NOON))
    now = _NOON + timedelta(hours=5, minutes=30)
    rule = misfire.MisfireRule(**fields)
    decisions = misfire.plan(store.schedule("hourly"), agenda, now, rule=rule).decisions
    return [len(decisions), sum(each.decision is Decision.FIRED for each in decisions)]


def _silent(*looks_s: float) -> Callable[[Overlay], int | None]:
    """Return what tells at which of some looks a worker that never beats is given up."""

    def told(copies: Overlay) -> int | None:
        clock = [0.0]
        store = MemoryStore(lambda: _NOON)
        store.register("w", kinds=["a"], queues=["default"], lease_s=_LEASE_S)
        sweeper = copies[SWEEPER].Sweeper(store, monotonic=lambda: clock[0])
        for n, look_s in enumerate(looks_s):
            clock[0] = look_s
            if sweeper.sweep():
                return n
        return None

    return told


def _used_late(copies: Overlay) -> list[bool]:
    """Begin one attempt before, one within and one after the time of three permits."""
    batch = copies[PERMITS].Batch(
        [("queue:mail", 1)], 3, at=100.0, instant_s=(100.0, 100.1), ring=lambda: None
    )
    return [batch.use(now_s) for now_s in (100.05, 100.5, 105.0)]


class _Deaf:
    """A bell that nobody rings: it notes how long is waited for it, and ends the worker."""

    def __init__(self, worker: Any) -> None:
        self.rests_s: list[float] = []
        self._worker = worker

    def wait(self, rest_s: float) -> None:
        self.rests_s.append(rest_s)
        if len(self.rests_s) == _RESTS:
            self._worker.stop()

    def ring(self) -> None:
        pass


def _polls(copies: Overlay) -> bool:
    """Return whether an idle worker never rests for longer than its poll interval."""
    config = WorkerConfig(name="w", slots=1, poll_s=_POLL_S)
    worker = copies[LOOP].Worker(MemoryStore(lambda: _NOON), Registry(), config, draw=lambda: 0.5)
    worker._bell = bell = _Deaf(worker)  # noqa: SLF001 - there is no other way to hear nothing
    worker.work()
    return max(bell.rests_s) <= _POLL_S


GAP: Final = CodeProbe(
    name="half past two on the day that has none",
    modules=(OCCURRENCES,),
    run=_days("30 2 * * *", "2026-03-07T00:00+00:00"),
    expected=["03-07T07:30", "03-08T07:00", "03-09T06:30"],
)
SUMMER: Final = CodeProbe(
    name="nine o'clock is nine o'clock in summer",
    modules=(OCCURRENCES,),
    run=_days("0 9 * * *", "2026-06-01T00:00+00:00"),
    expected=["06-01T13:00", "06-02T13:00", "06-03T13:00"],
)
FOLD: Final = CodeProbe(
    name="half past one comes once on the day that has two",
    modules=(OCCURRENCES,),
    run=_days("30 1 * * *", "2026-10-31T12:00+00:00"),
    expected=["11-01T05:30", "11-02T06:30", "11-03T06:30"],
)
MISSED: Final = CodeProbe(
    name="what was missed is decided", modules=(MISFIRE,), run=_missed, expected=[5, 5]
)
BOUNDED: Final = CodeProbe(
    name="no more are caught up with than the limit says",
    modules=(MISFIRE,),
    run=lambda copies: _missed(copies, limit=2),
    expected=[5, 2],
)
SILENT: Final = CodeProbe(
    name="a lease is over once it is over",
    modules=(SWEEPER,),
    run=_silent(100.0, 104.0, 108.0, 110.0, 114.0),
    expected=3,
)
AWAY: Final = CodeProbe(
    name="who did not look has seen nobody die",
    modules=(SWEEPER,),
    run=_silent(100.0, 104.0, 130.0, 134.0),
    expected=None,
)
USED_LATE: Final = CodeProbe(
    name="a permit holds for its own time",
    modules=(PERMITS,),
    run=_used_late,
    expected=[False, True, False],
)
POLLS: Final = CodeProbe(
    name="who hears nothing looks nevertheless", modules=(LOOP,), run=_polls, expected=True
)
