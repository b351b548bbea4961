"""Settings: what this server was told and by whom, who may ask, and of what it is made."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from timeball.store.postgres.reading import READERS_MAX, TIMEOUT_S
from timeball.web.api.settings import settings_of
from timeball.web.desk import desk_of
from timeball.web.guard import BODY_MAX
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.sessions import AGE_MAX_S, IDLE_MAX_S
from timeball.web.shell import rendered

routes = Routes()


@routes.get("/settings", Scope.ADMIN)
def show_settings_page(request: Request) -> Response:
    """Show how this server is set up; nothing of it is changed here."""
    desk = desk_of(request)
    return rendered(
        request,
        "settings",
        title="Settings",
        here="settings",
        found=settings_of(desk),
        now=desk.look.store.now(),
        readers=READERS_MAX,
        statement_s=TIMEOUT_S,
        body_max=BODY_MAX,
        session_s=AGE_MAX_S,
        idle_s=IDLE_MAX_S,
    )
