"""Doctor: what is wrong with this installation, and the commands that mend it."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.diagnosis import Severity, diagnosed
from timeball.store.postgres.doctor import examine
from timeball.web.desk import desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import rendered

routes = Routes()


@routes.get("/doctor", Scope.OPERATE)
def show_doctor(request: Request) -> Response:
    """Show what every check has found."""
    found = diagnosed(examine(desk_of(request).look_connections))
    counts = Counter(finding.severity for finding in found)
    return rendered(
        request,
        "doctor",
        title="Doctor",
        here="doctor",
        found=found,
        counts=[(severity, counts[severity]) for severity in reversed(Severity)],
    )
