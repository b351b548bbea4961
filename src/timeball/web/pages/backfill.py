"""Past occurrences of a schedule that have not run: how many there are, and whether they are to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

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
    first, last = _instant("from", start) if start else None, _instant("to", end) if end else now
    return rendered(
        request,
        "backfill",
        title=f"Backfill {schedule}",
        here="schedules",
        own_zone=spec.tz,
        spec=spec,
        start=first,
        end=last,
        found=would_run(request, schedule, first, last) if first else None,
        shown=_SHOWN,
    )


def _instant(name: str, text: str) -> datetime:
    """Return the instant that a field names; without an offset it is in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(400, f"{name}: write a time such as 2026-10-25T02:30, in UTC") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _backfill(request: Request, fields: dict[str, list[str]]) -> str:
    start, end = (_instant(name, fields.get(name, [""])[0]) for name in ("start", "end"))
    backfill(request, named(request.path_params["schedule"]), start, end)
    return "backfilled"


routes.post("/backfill/{schedule:path}", Scope.OPERATE)(
    changing("/schedules/{schedule}", _backfill, "backfill_one_schedule")
)
