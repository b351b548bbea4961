"""Lists of jobs, and changes of many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from timeball.core.states import State
from timeball.errors import JobNotFound, StoreUnavailable
from timeball.store.postgres.panorama import LOOKED_MAX
from timeball.web.api.jobs import cancel, counted, delete, page_of, revive
from timeball.web.desk import desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.search import understood
from timeball.web.shell import base_of, changing, rendered

routes = Routes()
PAGE: Final = 50
TICKED_MAX: Final = 500


@routes.get("/jobs", Scope.READ)
def show_jobs(request: Request) -> Response:
    """Show a page of jobs."""
    desk, text = desk_of(request), request.query_params.get("q", "").strip()
    search = understood(text)
    if search.path is not None:
        return RedirectResponse(f"{base_of(request)}{search.path}", 303)
    before = request.query_params.get("before", "")
    before_id = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None  # noqa: PLR2004 - of a bigint
    counts, capped = counted(desk)
    found, more = page_of(desk, search.only, limit=PAGE, before_id=before_id)
    return rendered(
        request,
        "jobs",
        title="Jobs",
        here="jobs",
        query=text,
        faults=search.faults,
        jobs=found,
        counts=counts,
        capped=capped,
        filter={name: str(value) for name, value in search.only.items()},
        state=search.only.get("state"),
        rest=" ".join(word for word in text.split() if not word.startswith("state:")),
        first=before_id is None,
        more=more and urlencode({"q": text, "before": more}),
        looked=LOOKED_MAX if more and len(found) < PAGE else None,
        now=desk.look.store.now(),
        states=list(State),
    )


def _of_each(change: Callable[[Request, str], str]) -> Callable[..., str]:
    """Return a change of all jobs that were ticked, each on record by itself."""

    def change_all(request: Request, fields: dict[str, list[str]]) -> str:
        ticked = fields.get("job", [])[:TICKED_MAX]
        refused = 0
        for done, job in enumerate(ticked):
            try:
                change(request, job)
            except (Problem, JobNotFound):
                refused += 1
            except StoreUnavailable:
                if not done:
                    raise
                raise _cut_short(done - refused, refused, len(ticked) - done) from None
        return "none" if not ticked else "some" if refused else "all"

    return change_all


def _cut_short(changed: int, refused: int, left: int) -> Problem:
    """Return what tells a person how far a change has come."""
    return Problem(
        503,
        f"the database went away: {changed} were changed until then, {refused} refused; go back "
        f"and press the button again for the {left} that may be left",
    )


routes.post("/jobs/cancel", Scope.OPERATE)(changing("/jobs", _of_each(cancel), "cancel_ticked"))
routes.post("/jobs/revive", Scope.OPERATE)(changing("/jobs", _of_each(revive), "revive_ticked"))
routes.post("/jobs/delete", Scope.ADMIN)(changing("/jobs", _of_each(delete), "delete_ticked"))
