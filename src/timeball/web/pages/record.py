"""The record of what people have changed."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.web.desk import desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import rendered

routes = Routes()
PAGE: Final = 50
_DIGITS_MAX: Final = 18


@routes.get("/record", Scope.ADMIN)
def show_record(request: Request) -> Response:
    """Show who has changed what, newest first."""
    desk, before = desk_of(request), request.query_params.get("before", "")
    plain = before.isascii() and before.isdigit() and len(before) <= _DIGITS_MAX
    found = desk.operations.page(before_id=int(before) if plain else None, limit=PAGE + 1)
    return rendered(
        request,
        "record",
        title="Record",
        here="record",
        operations=found[:PAGE],
        first=not plain,
        more=found[PAGE - 1].id if len(found) > PAGE else None,
        now=desk.look.store.now(),
    )
