"""One job: its life, where its time went, its attempts, and what can be done with it."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.batches import BATCH
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import Rule
from timeball.core.states import TERMINAL
from timeball.web import life
from timeball.web.api.jobs import Which, add_parents, cancel, delete, move, revive, snooze
from timeball.web.charts import bar
from timeball.web.desk import desk_of, sees_payload
from timeball.web.forms import RULES, Form
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import back, changing, rendered
from timeball.web.zones import choice_of

routes = Routes()
_PARTS: Final = (
    ("held", "held back", "scheduled, waiting for others, or backing off"),
    ("pending", "pending", "from when it might start until a worker took it"),
    ("granted", "with a worker", "for a slot, or a permit to start"),
    ("running", "running", "in the job itself"),
)


@routes.get("/jobs/{job}", Scope.READ)
def show_one_job(request: Request, job: Which) -> Response:
    """Show one job."""
    desk, payload = desk_of(request), sees_payload(request)
    found = desk.find(job)
    if found.kind == BATCH:
        return back(request, f"/batches/{found.uuid}")
    turns, happened = desk.panorama.turns(found.id), desk.panorama.happened(found.id)
    now = desk.look.store.now()
    over = found.state in TERMINAL
    steps = life.moments(found, turns, happened)
    spent = life.spent(found, turns, now)
    shares = [(name, getattr(spent, name)) for name, _, _ in _PARTS]
    return rendered(
        request,
        "job",
        title=f"{found.kind} #{found.id}",
        here="jobs",
        job=found,
        payload=payload,
        called=found.kind == CALLBACK,
        now=now,
        over=over,
        turns=turns[::-1],
        steps=steps,
        life=life.drawn(steps, open_until=None if over else now, zone=choice_of(request).zone),
        parts=[(*part, share) for part, (_, share) in zip(_PARTS, shares, strict=True)],
        whole=sum(spent),
        bar=bar(shares, label="Where the time went; the numbers below say the same"),
        verdict=life.verdict(found, turns),
        parents=desk.look.store.parents(found.id),
        rules=RULES,
        lines=desk.look.logs(found.uuid) if payload else [],
    )


def _move(request: Request, fields: dict[str, list[str]]) -> str:
    form = Form(fields)
    return move(request, _of(request), queue=form.text("queue"), priority=form.whole("priority"))


def _snooze(request: Request, fields: dict[str, list[str]]) -> str:
    minutes = Form(fields).whole("minutes")
    return snooze(request, _of(request), delay_s=None if minutes is None else 60.0 * minutes)


def _add_parents(request: Request, fields: dict[str, list[str]]) -> str:
    desk, form = desk_of(request), Form(fields)
    rule = form.text("rule") or Rule.ALL_SUCCESS
    parents = [(desk.find(word).uuid, rule) for word in form.parents("parents")]
    if not parents:
        raise Problem(400, "parents: write the number or the id of a job, or several")
    return add_parents(request, _of(request), parents)


def _path(word: str) -> str:
    return f"/jobs/{{job}}/{word}"


routes.post(_path("cancel"), Scope.OPERATE)(
    changing("/jobs/{job}", lambda request, _: cancel(request, _of(request)), "cancel_one")
)
routes.post(_path("revive"), Scope.OPERATE)(
    changing("/jobs/{job}", lambda request, _: revive(request, _of(request)), "revive_one")
)
routes.post(_path("move"), Scope.OPERATE)(changing("/jobs/{job}", _move, "move_one"))
routes.post(_path("snooze"), Scope.OPERATE)(changing("/jobs/{job}", _snooze, "snooze_one"))
routes.post(_path("parents"), Scope.OPERATE)(
    changing("/jobs/{job}", _add_parents, "add_parents_of_one")
)
routes.post(_path("delete"), Scope.ADMIN)(
    changing("/jobs", lambda request, _: delete(request, _of(request)), "delete_one")
)


def _of(request: Request) -> str:
    return str(request.path_params["job"])
