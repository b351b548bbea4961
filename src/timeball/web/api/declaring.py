"""The API that adds schedules, and changes those that there are."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Request, Response
from pydantic import Field

from timeball.client.specs import agenda_of, no_path, schedule_spec
from timeball.core.cron import prose, warnings
from timeball.core.cron.transitions import clocks, transitions
from timeball.core.records import Schedule, ScheduleSpec
from timeball.errors import ScheduleNotFound
from timeball.web.api.models import WHOLE, Instant, Model, Priority, answer
from timeball.web.api.models import Name as Text
from timeball.web.desk import caller_of, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("schedules")
_JUMPS: Final = 2
_Whole = Annotated[int, Field(strict=True), WHOLE]
_Expression = Annotated[str, Field(min_length=1, max_length=4_000)]


class ScheduleIn(Model):
    """A schedule, as `Client.schedule` takes it. What is left out is as usual."""

    name: Text = Field(description="Of the schedule: one that is there is changed")
    kind: Text = Field(description="What its jobs are; no path of a command")
    cron: _Expression = Field(description="Five or six fields, @daily, @every, @calendar, @rrule")
    tz: Text = Field(description="Such as Europe/Paris")
    args: dict[str, Any] = Field(default_factory=dict)
    dst: Literal["auto", "cron"] | None = None
    gap: Literal["next_valid", "shift", "skip", "prev_valid"] | None = None
    overlap: Literal["first", "second", "both"] | None = None
    any_of: Annotated[list[_Expression], Field(max_length=32)] | None = None
    exclude: Annotated[list[_Expression], Field(max_length=2_000)] | None = None
    on_excluded: Literal["skip", "next", "prev"] | None = None
    day_rule: Literal["cron", "and", "or"] | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: _Whole | None = None
    jitter_s: _Whole | None = None
    catchup: Literal["last", "none", "all"] | None = None
    overlap_runs: Literal["skip", "queue_one", "allow", "replace"] | None = None
    queue: Text | None = None
    priority: Priority | None = None
    key: Text | None = None
    max_retries: _Whole | None = None


class DeclaredOut(Model):
    """What became of a schedule."""

    name: str
    state: str
    said: str = Field(description="When it comes due, in words")
    warnings: list[str] = Field(description="What may surprise whoever has written it")


@routes.put("/api/v1/schedules", Scope.ADMIN, gives=DeclaredOut)
def declare_schedule(request: Request, how: ScheduleIn) -> Response:
    """Add a schedule, or change the one of that name; the same again changes nothing."""
    spec = spec_of(how)
    found = declare(request, spec)
    told = surprises(spec, found.cursor)
    return answer(DeclaredOut(name=spec.name, state=found.state, said=said_of(spec), warnings=told))


def spec_of(how: ScheduleIn) -> ScheduleSpec:
    """Return the checked spec of a schedule.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    given = how.model_dump(exclude_none=True, exclude={"name", "kind", "cron", "tz"})
    return schedule_spec(how.name, no_path(how.kind), cron=how.cron, tz=how.tz, **given)


def declare(request: Request, spec: ScheduleSpec) -> Schedule:
    """Add or change a schedule on record; return it as it is then."""
    desk = desk_of(request)

    def change() -> dict[str, Any]:
        desk.client.declare(spec)
        return {**_facts(spec), "state": desk.client.get_schedule(spec.name).state}

    found = declared(request, spec.name)
    before = {} if found is None else {**_facts(found.spec), "state": found.state}
    target = f"schedule {spec.name}"
    desk.record(caller_of(request), "schedule.declare", target, before=before, change=change)
    return desk.client.get_schedule(spec.name)


def declared(request: Request, name: str) -> Schedule | None:
    """Return the schedule of a name; None where there is none."""
    try:
        return desk_of(request).look.get_schedule(name)
    except ScheduleNotFound:
        return None


def said_of(spec: ScheduleSpec) -> str:
    """Return when a schedule comes due, in words."""
    return "; ".join(prose(each) for each in agenda_of(spec).expressions)


def surprises(spec: ScheduleSpec, after: datetime) -> list[str]:
    """Return what somebody should know who declares a schedule: warnings, and clock changes."""
    table = agenda_of(spec)
    jumps = [each for each in transitions(table, after, _JUMPS) if each.affected]
    return [
        *warnings(table, after),
        *(f"{clocks(each.seam)}: {each.text}" for each in jumps),
    ]


def _facts(spec: ScheduleSpec) -> dict[str, Any]:
    """Return what the record says of a schedule: not what its jobs are given."""
    facts = {name: getattr(spec, name) for name in ("kind", "expression", "tz", "queue")}
    terms = json.loads(spec.terms)
    return {**facts, **({"terms": terms} if terms else {})}
