"""The overview: how it stands, and what needs somebody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import nlargest, nsmallest
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.limits import Scope as LimitScope
from timeball.core.limits import StartRate
from timeball.core.queues import Queue
from timeball.core.records import Schedule
from timeball.core.states import TERMINAL, State
from timeball.store.postgres.panorama import LEFT_MAX, NEWEST_MAX, WorkerRecord
from timeball.web.api.jobs import waiting
from timeball.web.api.schedules import upcoming
from timeball.web.charts import area, spark
from timeball.web.desk import Desk, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import rendered
from timeball.web.wording import duration

routes = Routes()
_MINUTES: Final = 30
_COMING: Final = 10
_COMING_OF_ONE: Final = 3
_SCHEDULES: Final = 100
"""Schedules that are looked at: of those that fire next, and of those in error."""

_HINTS: Final = {
    State.SCHEDULED: "not due yet",
    State.WAITING: "for other jobs",
    State.PENDING: "may start now",
    State.RUNNING: "with a worker",
}
_SLOW_S: Final = 5.0
"""A queue whose rate lets its jobs start within less time is no news."""

_RECENT: Final = 8
_FULLEST: Final = 8
_ALERTS: Final = 12


class Tile(NamedTuple):
    """One state with how many jobs are in it."""

    state: State
    jobs: int
    capped: bool
    line: Any
    """How many ended in it in each of the last minutes, drawn; None where no job ends in it."""

    hint: str


class Alert(NamedTuple):
    """Something that needs somebody, in words."""

    text: str
    path: str
    """Where to do something about it."""


@routes.get("/", Scope.READ)
def show_overview(request: Request) -> Response:
    """Show how it stands."""
    desk = desk_of(request)
    queues, workers = desk.look.queues(), desk.panorama.workers(counted=False)
    schedules = desk.panorama.schedules_ahead(_SCHEDULES)
    recent = desk.look.jobs(limit=_RECENT)
    starts, failures = desk.panorama.starts(), desk.panorama.failures()
    known = starts.per_second[len(starts.per_second) - starts.known :]
    alive = [worker for worker in workers if worker.ended_at is None]
    alerts = [
        *_of_queues(queues, alive),
        *_of_rates(queues, desk.look.store.rates()),
        *_of_others(schedules, alive),
    ]
    return rendered(
        request,
        "overview",
        title="Overview",
        here="",
        now=desk.look.store.now(),  # after all that is told from it: nothing came later
        tiles=_tiles(desk, queues),
        alerts=alerts[:_ALERTS],
        unsaid=len(alerts[_ALERTS:]),
        queues=len(queues),
        fullest=_fullest(queues),
        workers=len(alive),
        slots=sum(queue.running for queue in queues),
        chart=area(known, label=f"Attempts that began in each of the last {len(known)} seconds"),
        began=sum(known),
        seconds=len(known),
        failures=failures,
        coming=_coming(schedules),
        recent=recent,
        batch=desk.panorama.last_batch(),
        left_max=LEFT_MAX,
    )


def _fullest(queues: Sequence[Queue]) -> list[Queue]:
    """Return the queues with most jobs, by name: their rows stay where they are."""
    found = nlargest(_FULLEST, queues, key=lambda queue: queue.pending + queue.held + queue.running)
    return sorted(found, key=lambda queue: queue.name)


def _tiles(desk: Desk, queues: Sequence[Queue]) -> list[Tile]:
    standing, capped = waiting(desk, queues)
    endings = desk.panorama.endings()
    tiles = []
    for state in State:
        minutes = endings.get(state, Counter())
        count = minutes.total() if state in TERMINAL else standing[state]
        line = [minutes[ago] for ago in range(_MINUTES - 1, -1, -1)] if state in TERMINAL else None
        tiles.append(
            Tile(
                state,
                count,
                state in capped or count >= NEWEST_MAX,
                line and spark(line),
                _HINTS.get(state, ""),
            )
        )
    return tiles


def _of_queues(queues: Sequence[Queue], workers: Sequence[WorkerRecord]) -> Iterator[Alert]:
    served = {name for worker in workers for name in worker.queues}
    for queue in queues:
        jobs = f"{queue.pending:,} pending job{'s' if queue.pending != 1 else ''}"
        if queue.paused_at is not None:
            waits = f": {jobs} wait" if queue.pending else ""
            yield Alert(f"{queue.name} is paused by {queue.paused_by}{waits}", "queues")
        elif queue.pending and queue.name not in served:
            yield Alert(f"{queue.name}: no worker that lives serves it, and {jobs} wait", "workers")
        elif queue.pending and queue.at_once is not None and queue.running >= queue.at_once:
            text = f"{queue.name}: its limit of {queue.at_once} at once is the bottleneck: {jobs}"
            yield Alert(f"{text} wait", "limits")
        if queue.max_depth is not None and queue.pending + queue.held >= queue.max_depth:
            yield Alert(f"{queue.name} is full: it refuses what is submitted", "queues")


def _of_rates(queues: Sequence[Queue], rates: Sequence[StartRate]) -> Iterator[Alert]:
    """Yield for each queue whose rate keeps many jobs back how long all of them will take."""
    pending = {queue.name: queue.pending for queue in queues if queue.paused_at is None}
    for limit in rates:
        if limit.scope is not LimitScope.QUEUE:
            continue
        waits = pending.get(limit.name, 0)
        seconds = waits * float(limit.rate.per_s) / limit.rate.count
        if seconds > _SLOW_S:
            text = f"{limit.name}: its rate of {limit.rate} is the bottleneck: {waits:,} pending"
            yield Alert(f"{text} jobs take {duration(seconds)} to start", "limits")


def _of_others(schedules: Sequence[Schedule], workers: Sequence[WorkerRecord]) -> Iterator[Alert]:
    for schedule in schedules:
        if schedule.state == "error":
            yield Alert(f"{schedule.spec.name} does not fire: {schedule.error}", "schedules")
    for worker in workers:
        if worker.silent_s > worker.lease_s:
            yield Alert(f"{worker.name} has been silent for longer than its lease", "workers")


def _coming(schedules: Sequence[Schedule]) -> list[tuple[datetime, Schedule]]:
    """Return the next occurrences of all schedules together."""
    first = nsmallest(_COMING, (one for one in schedules if one.next_at), key=_next)
    found = [(at, one) for one in first for at in upcoming(one, _COMING_OF_ONE)]
    return nsmallest(_COMING, found, key=lambda pair: (pair[0], pair[1].spec.name))


def _next(schedule: Schedule) -> datetime:
    assert schedule.next_at is not None
    return schedule.next_at
