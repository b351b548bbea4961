"""Past occurrences of a schedule that have not run: how many there are, and whether they are to."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.cron.written import instant_of
from timeball.errors import UsageError
from timeball.web.addresses import Name, named
from timeball.web.api.schedules import backfill, would_run
from timeball.web.desk import desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import changing, rendered

routes = Routes()
_SHOWN: Final = 10


@routes.get("/backfill/{schedule:path}", Scope.OPERATE)
def ask_about_backfill(request: Request, schedule: Name) -> Response:
    """Say which past occurrences of a schedule would run, and ask."""
    given = request.query_params
    now = desk_of(request).look.store.now().replace(microsecond=0)
    spec = desk_of(request).look.get_schedule(schedule).spec
    start, end = (given.get(name, "").strip() for name in ("start", "end"))
    first = _instant("from", start, spec.tz) if start else None
    last = _instant("to", end, spec.tz) if end else now
    return rendered(
        request,
        "backfill",
        title=f"Backfill {schedule}",
        here="schedules",
        own_zone=spec.tz,
        spec=spec,
        given={"start": start, "end": end},
        start=first,
        end=last,
        found=would_run(request, schedule, first, last) if first else None,
        shown=_SHOWN,
    )


def _instant(name: str, text: str, tz: str) -> datetime:
    """Return the instant that a field names; without an offset it is in the schedule's zone."""
    try:
        return instant_of(text, lambda: tz)
    except UsageError as error:
        raise Problem(400, f"{name}: {error}") from None


def _backfill(request: Request, fields: dict[str, list[str]]) -> str:
    name = named(request.path_params["schedule"])
    tz = desk_of(request).look.get_schedule(name).spec.tz
    start, end = (_instant(each, fields.get(each, [""])[0], tz) for each in ("start", "end"))
    backfill(request, name, start, end)
    return "backfilled"


routes.post("/backfill/{schedule:path}", Scope.OPERATE)(
    changing("/schedules/{schedule}", _backfill, "backfill_one_schedule")
)
