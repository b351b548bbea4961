"""The API about schedules."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import Field

from timeball.client.schedules import Backfill
from timeball.client.specs import agenda_of
from timeball.core.records import Schedule
from timeball.core.redaction import redacted_value
from timeball.errors import UsageError
from timeball.web.addresses import Name
from timeball.web.api.models import (
    Answered,
    Instant,
    Model,
    OccurrenceOut,
    ResumeIn,
    ScheduleDetail,
    ScheduleList,
    ScheduleOut,
    Submitted,
    Truth,
    answer,
)
from timeball.web.desk import Desk, caller_of, desk_of, sees_payload
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

NEXT_MAX: Final = 100
HISTORY: Final = 50
BACKFILL_MAX: Final = 5_000
"""Jobs that one request adds; `timeball cron backfill` adds more."""

_FIRST_YEAR: Final = 1970

routes = Routes("schedules")


class BackfillIn(Model):
    """Which past occurrences are to run, both ends included."""

    start: Instant = Field(description="In 1970 at the earliest")
    end: Instant = Field(description="Not in the future")
    dry_run: Truth = Field(False, description="Only say what would run")


class BackfillOut(Model):
    """What runs by a backfill, or would."""

    fired: list[datetime] = Field(description="5,000 at most: else nothing is done")
    already: int = Field(description="Others of the range have run before, and do not again")
    dry_run: bool


@routes.get("/api/v1/schedules", Scope.READ, gives=ScheduleList)
def list_schedules(request: Request) -> Response:
    """List schedules, by name."""
    payload = sees_payload(request)
    found = desk_of(request).look.schedules()
    return answer(ScheduleList(schedules=[_out(each, payload=payload) for each in found]))


@routes.get("/api/v1/schedules/{schedule:path}", Scope.READ, gives=ScheduleDetail, also=(404,))
def show_schedule(
    request: Request, schedule: Name, n: Annotated[int, Query(ge=0, le=NEXT_MAX)] = 10
) -> Response:
    """Show one schedule: when it fires next, and what was decided lately."""
    desk = desk_of(request)
    found = desk.look.get_schedule(schedule)
    decided = desk.look.occurrences(schedule, HISTORY)
    return answer(
        ScheduleDetail(
            schedule=_out(found, payload=sees_payload(request)),
            next=upcoming(found, n),
            occurrences=[
                OccurrenceOut(
                    at=each.nominal_at,
                    decision=each.decision,
                    reason=each.reason,
                    decided_at=each.decided_at,
                    job=each.job,
                    job_state=each.job_state,
                )
                for each in decided
            ],
        )
    )


@routes.post("/api/v1/schedules/{schedule:path}/pause", Scope.OPERATE, gives=Answered, also=(404,))
def pause_schedule(request: Request, schedule: Name) -> Response:
    """Keep a schedule from firing until it is resumed."""
    return answer(Answered(answer=pause(request, schedule)))


@routes.post("/api/v1/schedules/{schedule:path}/resume", Scope.OPERATE, gives=Answered, also=(404,))
def resume_schedule(request: Request, schedule: Name, how: ResumeIn | None = None) -> Response:
    """Let a schedule go on that is paused or in error."""
    return answer(Answered(answer=resume(request, schedule, backfill=bool(how and how.backfill))))


@routes.post(
    "/api/v1/schedules/{schedule:path}/run", Scope.OPERATE, gives=Submitted, status=201, also=(404,)
)
def run_schedule(request: Request, schedule: Name) -> Response:
    """Add one extra job of a schedule now; no occurrence is decided."""
    return answer(run(request, schedule), 201)


@routes.post(
    "/api/v1/schedules/{schedule:path}/backfill", Scope.OPERATE, gives=BackfillOut, also=(404,)
)
def backfill_schedule(request: Request, schedule: Name, which: BackfillIn) -> Response:
    """Run the past occurrences of a schedule that have not run; the same again does no harm."""
    act = would_run if which.dry_run else backfill
    found = act(request, schedule, which.start, which.end)
    out = BackfillOut(fired=[*found.fired], already=len(found.already), dry_run=found.dry_run)
    return answer(out)


@routes.delete("/api/v1/schedules/{schedule:path}", Scope.ADMIN, gives=Answered, also=(404,))
def remove_schedule(request: Request, schedule: Name) -> Response:
    """Retire a schedule; what was decided stays on record, and declaring it brings it back."""
    return answer(Answered(answer=remove(request, schedule)))


def remove(request: Request, name: str) -> str:
    """Retire a schedule on record; return "removed"."""
    desk = desk_of(request)

    def change() -> dict[str, Any]:
        desk.client.remove_schedule(name)
        return {"answer": "removed"}

    before = {"state": desk.look.get_schedule(name).state}
    target = f"schedule {name}"
    after = desk.record(caller_of(request), "schedule.remove", target, before=before, change=change)
    return str(after["answer"])


def would_run(request: Request, name: str, start: datetime, end: datetime) -> Backfill:
    """Return what a backfill would run.

    Raises:
        Problem: It is more than one request may add, or too long ago.
    """
    if start.year < _FIRST_YEAR:
        raise Problem(400, f"start: write an instant in {_FIRST_YEAR} or later")
    found = desk_of(request).look.backfill(name, start, end, dry_run=True)
    if len(found.fired) > BACKFILL_MAX:
        raise Problem(
            400,
            f"{len(found.fired):,} occurrences would run: choose a shorter range, of "
            f"{BACKFILL_MAX:,} at most, or use `timeball cron backfill`",
        )
    return found


def backfill(request: Request, name: str, start: datetime, end: datetime) -> Backfill:
    """Run past occurrences that have not run, on record; see `would_run`."""
    desk, made = desk_of(request), list[Backfill]()
    would = would_run(request, name, start, end)

    def change() -> dict[str, Any]:
        made.append(desk.client.backfill(name, start, end))
        return {"jobs": len(made[0].fired)}

    before = {"from": start.isoformat(), "to": end.isoformat(), "would_run": len(would.fired)}
    target = f"schedule {name}"
    desk.record(caller_of(request), "schedule.backfill", target, before=before, change=change)
    return made[0]


def pause(request: Request, name: str) -> str:
    """Pause a schedule on record; return the state that it is in."""
    return _changed(request, name, "schedule.pause", lambda desk: desk.client.pause_schedule(name))


def resume(request: Request, name: str, *, backfill: bool = False) -> str:
    """Resume a schedule on record; return the state that it is in."""

    def change(desk: Desk) -> None:
        desk.client.resume_schedule(name, backfill=backfill)

    return _changed(request, name, "schedule.resume", change)


def run(request: Request, name: str) -> Submitted:
    """Add an extra job of a schedule on record."""
    desk = desk_of(request)

    def change() -> dict[str, Any]:
        handle = desk.client.run_schedule(name)
        return {"id": handle.id, "uuid": handle.uuid}

    before = {"state": desk.look.get_schedule(name).state}
    target = f"schedule {name}"
    after = desk.record(caller_of(request), "schedule.run", target, before=before, change=change)
    return Submitted(**after)


def upcoming(schedule: Schedule, n: int) -> list[datetime]:
    """Return the next occurrences of a schedule after its cursor; none where it is not active."""
    if schedule.state != "active" or n == 0:
        return []
    try:
        agenda = agenda_of(schedule.spec)
    except UsageError:  # its zone is known to who declared it, and not here
        return []
    found: list[datetime] = []
    at: datetime | None = schedule.cursor
    while len(found) < n and at is not None:
        at = agenda.next(at)
        if at is not None:
            found.append(at)
    return found


def _changed(request: Request, name: str, what: str, change: Callable[[Desk], None]) -> str:
    desk = desk_of(request)

    def changed() -> dict[str, Any]:
        change(desk)
        return {"state": desk.client.get_schedule(name).state}

    before = {"state": desk.look.get_schedule(name).state}
    target = f"schedule {name}"
    after = desk.record(caller_of(request), what, target, before=before, change=changed)
    return str(after["state"])


def _out(schedule: Schedule, *, payload: bool) -> ScheduleOut:
    spec = schedule.spec
    names = ScheduleOut.model_fields.keys()
    own = {name: getattr(spec, name) for name in names if hasattr(spec, name)}
    held = {name: value for name, value in schedule._asdict().items() if name in names}
    args = redacted_value("", json.loads(spec.args)) if payload else None
    return ScheduleOut(**{**own, **held, "args": args})
