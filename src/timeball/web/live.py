"""Telling open pages that something has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from timeball.web.desk import desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.tide import Tide

LISTENERS_MAX: Final = 500
OPEN_S: Final = 600.0
"""Then the browser asks again, so that it is asked again who it is."""

routes = Routes()


@routes.get("/events", Scope.READ, gives="text/event-stream")
async def stream_events(request: Request) -> Response:
    """Tell of changes as they happen."""
    tide = desk_of(request).tide
    if tide.listeners >= LISTENERS_MAX:
        raise Problem(503, "too many pages are open", headers={"Retry-After": "30"})
    return StreamingResponse(_told(tide), media_type="text/event-stream")


async def _told(tide: Tide) -> AsyncIterator[str]:
    yield "retry: 3000\n\n"
    until = asyncio.get_running_loop().time() + OPEN_S
    async for changed in tide.changes():
        yield "event: tick\ndata: 1\n\n" if changed else ": still here\n\n"
        if asyncio.get_running_loop().time() > until:
            yield "event: again\ndata: 1\n\n"
            return
