"""One job: its life, where its time went, its attempts, and what can be done with it."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.batches import BATCH
from timeball.core.callbacks import CALLBACK
from timeball.core.states import TERMINAL
from timeball.web import life
from timeball.web.api.jobs import Which, cancel, delete, move, revive, snooze
from timeball.web.charts import bar
from timeball.web.desk import desk_of, sees_payload
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import back, changing, rendered
from timeball.web.zones import choice_of

routes = Routes()
_DIGITS_MAX: Final = 7
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
        lines=desk.look.logs(found.uuid) if payload else [],
    )


def _move(request: Request, fields: dict[str, list[str]]) -> str:
    queue, priority = fields.get("queue", [""])[0].strip(), _number(fields, "priority")
    return move(request, _of(request), queue=queue or None, priority=priority)


def _snooze(request: Request, fields: dict[str, list[str]]) -> str:
    minutes = _number(fields, "minutes")
    return snooze(request, _of(request), delay_s=None if minutes is None else 60.0 * minutes)


def _number(fields: dict[str, list[str]], name: str) -> int | None:
    text = fields.get(name, [""])[0].strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise Problem(400, f"{name}: write a number of at most {_DIGITS_MAX} digits")
    return int(text)


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
routes.post(_path("delete"), Scope.ADMIN)(
    changing("/jobs", lambda request, _: delete(request, _of(request)), "delete_one")
)


def _of(request: Request) -> str:
    return str(request.path_params["job"])
