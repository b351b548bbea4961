"""Schedules: when they fire, what was decided and why, and a day of them as it passes."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.client.specs import agenda_of
from timeball.core.cron import Zone, load_zone, prose
from timeball.core.cron.months import days, following_month
from timeball.core.cron.transitions import clocks, transitions
from timeball.core.records import Schedule
from timeball.errors import UsageError
from timeball.web import month
from timeball.web.addresses import Name, named, segment
from timeball.web.api.schedules import HISTORY, pause, remove, resume, run, upcoming
from timeball.web.desk import desk_of, sees_payload
from timeball.web.parts import part_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import base_of, changing, rendered
from timeball.web.strip import Row, Strip, drawn, strip_of
from timeball.web.zones import SCHEDULES, choice_of

routes = Routes()
_ROWS_MAX: Final = 40
_NEXT: Final = 10
_JUMPS: Final = 2
_DAY: Final = timedelta(days=1)


@routes.get("/schedules", Scope.READ)
def show_schedules(request: Request) -> Response:
    """Show every schedule, and a day of them."""
    desk = desk_of(request)
    found, now = desk.look.schedules(), desk.look.store.now()
    zones = sorted({each.spec.tz for each in found})
    strip = _strip(request, zones, now)
    part = part_of(request, found, lambda each: each.spec.name)
    return rendered(
        request,
        "schedules",
        title="Schedules",
        here="schedules",
        part=part,
        schedules=[(each, _said(each)) for each in part.rows],
        now=now,
        drawn=strip and drawn(strip, _rows(part.rows), now=now),
        **_days(strip, zones),
    )


@routes.get("/schedules/{schedule:path}", Scope.READ)
def show_one_schedule(request: Request, schedule: Name) -> Response:
    """Show one schedule."""
    desk = desk_of(request)
    found, now = desk.look.get_schedule(schedule), desk.look.store.now()
    strip, shown = _strip(request, [found.spec.tz], now), choice_of(request, found.spec.tz).zone
    return rendered(
        request,
        "schedule",
        title=schedule,
        here="schedules",
        schedule=found,
        said=_said(found),
        now=now,
        own_zone=found.spec.tz,
        payload=sees_payload(request),
        coming=_walls(found),
        other=_other(found.spec.tz, shown.name),
        decided=desk.look.occurrences(schedule, HISTORY),
        drawn=strip and drawn(strip, _rows([found]), now=now),
        **_days(strip, [found.spec.tz]),
        **_outlook(request, found, now, strip),
    )


def _other(own: str, shown: str) -> str | None:
    """Return in which zone besides its own the next occurrences are told."""
    return shown if shown != own else "UTC" if own != "UTC" else None


def _outlook(
    request: Request, schedule: Schedule, now: datetime, strip: Strip | None
) -> dict[str, Any]:
    """Return a month of a schedule, and what the next changes of its clocks will do."""
    nothing: dict[str, Any] = {"month": None, "map": None, "jumps": [], "clocks": clocks}
    try:
        table = agenda_of(schedule.spec)
        shown = strip.day if strip else _today(table.zone, now)
        first = shown.replace(day=1)
        later, earlier = following_month(first), (first - _DAY).replace(day=1)
        found = days(table, first, later - _DAY, count_max=month.COUNT_MAX)
    except (UsageError, ValueError, OverflowError):  # a zone or a day that is not known here
        return nothing
    here = f"{base_of(request)}/schedules/{segment(schedule.spec.name)}?day="
    return {
        **nothing,
        "month": found,
        "map": month.drawn(found, here, shown=shown),
        "total": month.total(found),
        "earlier": earlier,
        "later": later,
        "jumps": list(transitions(table, now, _JUMPS)),
    }


def _walls(schedule: Schedule) -> list[tuple[datetime, datetime]]:
    """Return the next occurrences, each with what the clock of its zone shows."""
    found = upcoming(schedule, _NEXT)
    table = agenda_of(schedule.spec) if found else None
    return [(at, table.wall(at)) for at in found] if table else []


def _rows(schedules: list[Schedule]) -> list[Row]:
    rows = []
    for each in schedules[:_ROWS_MAX]:
        try:
            table = agenda_of(each.spec)
        except UsageError:  # its zone is known elsewhere, and not here
            continue
        rows.append(Row(each.spec.name, each.spec.expression, table))
    return rows


def _strip(request: Request, zones: list[str], now: datetime) -> Strip | None:
    """Return the day that is asked for, in the zone that is; else today in the first one."""
    value = choice_of(request).value
    chosen = value if value != SCHEDULES else zones[0] if zones else "UTC"
    name = request.query_params.get("zone") or chosen
    try:
        zone = load_zone(name)
        asked = request.query_params.get("day")
        return strip_of(zone, date.fromisoformat(asked) if asked else _today(zone, now))
    except (UsageError, ValueError, OverflowError):
        return None


def _today(zone: Zone, now: datetime) -> date:
    return (now + timedelta(seconds=zone.offset(int(now.timestamp())))).date()


def _days(strip: Strip | None, zones: list[str]) -> dict[str, Any]:
    if strip is None:
        return {"strip": None, "before": None, "after": None, "zones": zones}
    before, after = strip.day - _DAY, strip.day + _DAY
    return {"strip": strip, "before": before, "after": after, "zones": zones}


def _said(schedule: Schedule) -> str:
    """Return a schedule in words."""
    try:
        return "; ".join(prose(each) for each in agenda_of(schedule.spec).expressions)
    except UsageError:
        return schedule.spec.expression


def _of(request: Request) -> str:
    return named(request.path_params["schedule"])


def _resume(request: Request, fields: dict[str, list[str]]) -> str:
    return resume(request, _of(request), backfill="backfill" in fields)


def _run(request: Request, _: dict[str, list[str]]) -> str:
    run(request, _of(request))
    return "submitted"


def _pause(request: Request, _: dict[str, list[str]]) -> str:
    return pause(request, _of(request))


for _word, _change in (("pause", _pause), ("resume", _resume), ("run", _run)):
    routes.post(f"/schedules/{{schedule:path}}/{_word}", Scope.OPERATE)(
        changing("/schedules/{schedule}", _change, f"{_word}_one_schedule")
    )
routes.post("/schedules/{schedule:path}/remove", Scope.ADMIN)(
    changing("/schedules", lambda request, _: remove(request, _of(request)), "remove_one_schedule")
)
