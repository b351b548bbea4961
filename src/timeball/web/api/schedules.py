"""The API about schedules."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from timeball.client.specs import agenda_of
from timeball.core.records import Schedule
from timeball.core.redaction import redacted_value
from timeball.errors import UsageError
from timeball.web.addresses import Name
from timeball.web.api.models import (
    Answered,
    OccurrenceOut,
    ResumeIn,
    ScheduleDetail,
    ScheduleList,
    ScheduleOut,
    Submitted,
    answer,
)
from timeball.web.desk import Desk, caller_of, desk_of, sees_payload
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

NEXT_MAX: Final = 100
HISTORY: Final = 50

routes = Routes("schedules")


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
