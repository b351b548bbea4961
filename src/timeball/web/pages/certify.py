"""Certify: what attacks on the promises have come to, and starting one."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.certify.scenario import Status
from timeball.core.diagnosis import Severity
from timeball.web.api.certify import start, titles
from timeball.web.desk import desk_of
from timeball.web.results import runs_in
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import changing, rendered

routes = Routes()
_TONES: Final = {
    "passed": Severity.OK,
    "skipped": Severity.NOTE,
    "vacuous": Severity.WARNING,
    "violated": Severity.TROUBLE,
    "broken": Severity.TROUBLE,
}


@routes.get("/certify", Scope.OPERATE)
def show_certify(request: Request) -> Response:
    """Show the latest runs, one of them whole."""
    rehearsal = desk_of(request).rehearsal
    runs, unread = ([], []) if rehearsal.folder is None else runs_in(rehearsal.folder)
    asked = request.query_params.get("run")
    chosen = next((run for run in runs if run.folder == asked), runs[0] if runs else None)
    return rendered(
        request,
        "certify",
        title="Certify",
        here="certify",
        has_folder=rehearsal.folder is not None,
        runs=runs,
        unread=unread,
        run=chosen,
        tones=_TONES,
        statuses=list(Status),
        latest=rehearsal.latest,
        said=rehearsal.said(),
        titles=titles() if rehearsal.folder is not None else {},
    )


def _start(request: Request, fields: dict[str, list[str]]) -> str:
    return start(request, fields.get("scenario", [""])[0] or None)


routes.post("/certify/start", Scope.ADMIN)(changing("/certify", _start, "start_one_run"))
