"""Submit: one job, added by hand."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID, uuid4

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from timeball.core.dependencies import RuledOut
from timeball.errors import TimeballError
from timeball.web.api.jobs import submit
from timeball.web.api.models import JobIn, ParentIn
from timeball.web.desk import desk_of
from timeball.web.forms import RULES, Form
from timeball.web.problems import Problem, problem_of, said_of_fields
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import back, fields_of, may, rendered
from timeball.web.zones import choice_of

routes = Routes()
_KINDS_MAX: Final = 200


@routes.get("/submit", Scope.SUBMIT)
def ask_what_to_submit(request: Request) -> Response:
    """Ask what to submit."""
    return _asked(request, Form({}), "")


@routes.post("/submit", Scope.SUBMIT)
async def submit_by_form(request: Request) -> Response:
    """Add a job; ask again where what was written makes none."""
    form = Form(await fields_of(request))
    return await run_in_threadpool(_submitted, request, form)


def _submitted(request: Request, form: Form) -> Response:
    try:
        added = submit(request, _job_of(request, form), on_record=True)
    except ValidationError as error:
        return _asked(request, form, said_of_fields(error), status=400)
    except (TimeballError, Problem) as error:
        problem = problem_of(error)
        return _asked(request, form, problem.detail, status=problem.status_code)
    path = f"/jobs/{added.uuid}" if may(request, Scope.READ) else "/submit"
    return back(request, path, "submitted")


def _job_of(request: Request, form: Form) -> JobIn:
    """Return the job that a form describes."""
    tz = choice_of(request).zone.name
    after = [
        ParentIn(job=_parent(request, word), rule=form.text("rule"))
        for word in form.parents("after")
    ]
    given: dict[str, Any] = {
        **{name: form.text(name) for name in ("kind", "uuid", "queue", "key", "unique")},
        **{name: form.whole(name) for name in ("priority", "max_retries")},
        **{name: form.instant(name, tz) for name in ("run_at", "expires_at")},
        "args": form.arguments("args"),
        "after": after or None,
        "ruled_out": form.text("ruled_out") if after else None,
    }
    return JobIn(**{name: value for name, value in given.items() if value is not None})


def _parent(request: Request, word: str) -> UUID:
    """Return the id of a job that is named; by its number only to who may look at jobs."""
    if may(request, Scope.READ):
        return desk_of(request).find(word).uuid
    try:
        return UUID(word)
    except ValueError:
        raise Problem(400, "after: write ids of jobs") from None


def _known(request: Request) -> list[str]:
    """Return the kinds that workers know, for who may look at workers."""
    workers = desk_of(request).panorama.workers() if may(request, Scope.READ) else []
    return sorted({kind for worker in workers for kind in worker.kinds})[:_KINDS_MAX]


def _asked(request: Request, form: Form, fault: str, *, status: int = 200) -> Response:
    return rendered(
        request,
        "submit",
        status=status,
        title="Submit a job",
        here="jobs",
        form=form,
        fault=fault,
        uuid=form.text("uuid") or uuid4(),
        kinds=_known(request),
        rules=RULES,
        ruled_out=tuple(RuledOut),
    )
