"""Limits: how many at once, how many starts in a time, and how far they are used up."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.limits import AT_ONCE_DEFAULT, Limit
from timeball.core.limits import Scope as LimitScope
from timeball.web.charts import bar
from timeball.web.desk import desk_of
from timeball.web.parts import part_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import rendered

routes = Routes()


@routes.get("/limits", Scope.READ)
def show_limits(request: Request) -> Response:
    """Show every limit that was set."""
    found = desk_of(request).look.limits()
    part = part_of(request, found, lambda limit: f"{limit.scope} {limit.name}")
    return rendered(
        request,
        "limits",
        title="Limits",
        here="limits",
        part=part,
        limits=[(limit, _used(limit)) for limit in part.rows],
        default=AT_ONCE_DEFAULT,
    )


def _used(limit: Limit) -> Any:
    """Return how much of a limit is used, drawn; None where it cannot be said in one number."""
    many_keys = limit.scope is LimitScope.KEY and limit.name.endswith("*")
    if limit.at_once is None or many_keys:
        return None
    free = max(0, limit.at_once - limit.used)
    label = f"{limit.used} of {limit.at_once} under way"
    return bar([("running", limit.used), ("free", free)], label=label)
