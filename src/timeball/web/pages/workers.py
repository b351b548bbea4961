"""Workers: who lives, who is silent, who has gone."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from timeball.store.postgres.panorama import WorkerRecord
from timeball.web.desk import desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import rendered

routes = Routes()


@routes.get("/workers", Scope.READ)
def show_workers(request: Request) -> Response:
    """Show every worker that lives, and the latest that do not."""
    desk = desk_of(request)
    found = desk.panorama.workers()
    return rendered(
        request,
        "workers",
        title="Workers",
        here="workers",
        alive=[(worker, _standing(worker)) for worker in found if worker.ended_at is None],
        gone=[worker for worker in found if worker.ended_at is not None],
        now=desk.look.store.now(),
    )


def _standing(worker: WorkerRecord) -> str:
    """Return "silent" for one whose lease has run out, whether or not anybody has seen it."""
    return "silent" if worker.silent_s > worker.lease_s else "alive"
