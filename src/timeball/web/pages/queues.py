"""Queues: what waits where, and pausing them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.queues import COUNT_MAX, DEPTH_MAX
from timeball.web.addresses import named
from timeball.web.api.queues import limit_depth, pause, resume
from timeball.web.desk import desk_of
from timeball.web.parts import part_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import changing, rendered

routes = Routes()


@routes.get("/queues", Scope.READ)
def show_queues(request: Request) -> Response:
    """Show every queue."""
    desk = desk_of(request)
    queues = desk.look.queues()
    served: dict[str, int] = {}
    for worker in desk.panorama.workers(counted=False):
        for name in worker.queues if worker.ended_at is None else ():
            served[name] = served.get(name, 0) + 1
    most = max((queue.pending + queue.held + queue.running for queue in queues), default=0)
    return rendered(
        request,
        "queues",
        title="Queues",
        here="queues",
        counted_to=min((queue.counted_to for queue in queues), default=COUNT_MAX),
        part=part_of(request, queues, lambda queue: queue.name),
        served=served,
        most=most or 1,
        now=desk.look.store.now(),
    )


def _of(request: Request) -> str:
    return named(request.path_params["queue"])


def _depth(request: Request, fields: dict[str, list[str]]) -> str:
    queue, text = (fields.get(name, [""])[0].strip() for name in ("queue", "max_depth"))
    if text and not (text.isascii() and text.isdigit() and len(text) <= len(str(DEPTH_MAX))):
        raise Problem(400, f"at most: write 1 to {DEPTH_MAX:,}, or nothing for any number")
    return limit_depth(request, queue, int(text) if text else None)


routes.post("/queues/depth", Scope.ADMIN)(changing("/queues", _depth, "limit_depth_of_queue"))
routes.post("/queues/{queue:path}/pause", Scope.OPERATE)(
    changing("/queues", lambda request, _: pause(request, _of(request)), "pause_one_queue")
)
routes.post("/queues/{queue:path}/resume", Scope.OPERATE)(
    changing("/queues", lambda request, _: resume(request, _of(request)), "resume_one_queue")
)
