"""Declare: a schedule, added or changed by hand; first it says when that would come due."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, get_args

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from timeball.client.specs import agenda_of
from timeball.core.records import ScheduleSpec
from timeball.errors import TimeballError
from timeball.web.addresses import segment
from timeball.web.api.declaring import (
    ScheduleIn,
    declare,
    declared,
    said_of,
    spec_of,
    surprises,
)
from timeball.web.desk import desk_of
from timeball.web.forms import Form
from timeball.web.problems import Problem, problem_of, said_of_fields
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import back, fields_of, rendered
from timeball.web.zones import choice_of

routes = Routes()
_SHOWN: Final = 5
_WORDS: Final = (*("dst", "gap", "overlap", "on_excluded", "day_rule", "catchup", "overlap_runs"),)
_TEXTS: Final = ("name", "kind", "cron", "tz", "queue", "key", *_WORDS)
_WHOLES: Final = ("max_runs", "jitter_s", "priority", "max_retries")


@routes.get("/declare", Scope.ADMIN)
def ask_what_to_declare(request: Request) -> Response:
    """Ask what to declare."""
    return _asked(request, Form({"tz": [choice_of(request).local]}))


@routes.post("/declare", Scope.ADMIN)
async def declare_by_form(request: Request) -> Response:
    """Say when a schedule would come due, or add it; ask again where what was written is none."""
    form = Form(await fields_of(request))
    return await run_in_threadpool(_answered, request, form)


def _answered(request: Request, form: Form) -> Response:
    try:
        spec = _spec_of(form)
        if form.text("act") != "add":
            return _asked(request, form, spec=spec)
        _add(request, spec, replace=form.text("replace") is not None)
    except ValidationError as error:
        return _asked(request, form, fault=said_of_fields(error), status=400)
    except (TimeballError, Problem) as error:
        problem = problem_of(error)
        return _asked(request, form, fault=problem.detail, status=problem.status_code)
    return back(request, f"/schedules/{segment(spec.name)}", "declared")


def _add(request: Request, spec: ScheduleSpec, *, replace: bool) -> None:
    if declared(request, spec.name) and not replace:
        raise Problem(409, f"there is a schedule {spec.name!r}: tick that it is to be changed")
    declare(request, spec)


def _spec_of(form: Form) -> ScheduleSpec:
    """Return the schedule that a form describes."""
    tz = form.text("tz") or "UTC"
    given: dict[str, Any] = {
        **{name: form.text(name) for name in _TEXTS},
        **{name: form.whole(name) for name in _WHOLES},
        **{name: form.lines(name) for name in ("any_of", "exclude")},
        **{name: form.instant(name, tz) for name in ("start_at", "end_at")},
        "args": form.arguments("args"),
    }
    how = ScheduleIn(**{name: value for name, value in given.items() if value is not None})
    return spec_of(how)


def _asked(
    request: Request,
    form: Form,
    *,
    fault: str = "",
    spec: ScheduleSpec | None = None,
    status: int = 200,
) -> Response:
    now = desk_of(request).look.store.now()
    table = None if spec is None else agenda_of(spec)
    coming = islice(table.following(now), _SHOWN) if table else ()
    return rendered(
        request,
        "declare",
        status=status,
        title="Add a schedule",
        here="schedules",
        form=form,
        fault=fault,
        options=_options(),
        more=any(form.text(name) for name in (*_TEXTS[4:], *_WHOLES, "any_of", "exclude")),
        spec=spec,
        said="" if spec is None else said_of(spec),
        coming=[(at, table.wall(at)) for at in coming] if table else [],
        surprising=[] if spec is None else surprises(spec, now),
        former=declared(request, name) if (name := form.text("name")) else None,
        now=now,
    )


def _options() -> dict[str, tuple[str, ...]]:
    """Return the words of each choice."""
    fields = ScheduleIn.model_fields
    return {name: get_args(get_args(fields[name].annotation)[0]) for name in _WORDS}
