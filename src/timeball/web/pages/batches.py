"""Batches: how far each is, what ran when, what comes after what, and why it was not faster."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.batch_report import record_of
from timeball.core.batches import COUNT_MAX, BatchLine, BatchState, Member
from timeball.core.limits import StartRate
from timeball.core.report import BatchReport
from timeball.core.states import TERMINAL, State
from timeball.errors import JobNotFound
from timeball.web import gantt, graph
from timeball.web.api.batches import batch_of, cancel, close, retry
from timeball.web.charts import bar
from timeball.web.desk import Desk, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import base_of, changing, rendered

routes = Routes()
PAGE: Final = 50
DRAWN_MAX: Final = 500
"""Jobs of a batch whose report is worked out while somebody waits for a page."""

COUNTED_MAX: Final = 3_000
"""Jobs of a batch that are counted state by state, for the same reason."""

LISTED_MAX: Final = 100
_DIGITS_MAX: Final = 18


@routes.get("/batches", Scope.READ)
def show_batches(request: Request) -> Response:
    """Show a page of batches."""
    desk, before = desk_of(request), request.query_params.get("before", "")
    plain = before.isascii() and before.isdigit() and len(before) <= _DIGITS_MAX
    found = desk.look.batches(limit=PAGE + 1, before_id=int(before) if plain else None)
    return rendered(
        request,
        "batches",
        title="Batches",
        here="batches",
        batches=[(each, _progress(each.members - each.left, each.left)) for each in found[:PAGE]],
        first=not plain,
        more=found[PAGE - 1].id if len(found) > PAGE else None,
        now=desk.look.store.now(),
    )


@routes.get("/batches/{batch}", Scope.READ)
def show_one_batch(request: Request, batch: UUID) -> Response:
    """Show one batch."""
    desk = desk_of(request)
    line = _line(desk, batch)
    if line.members > COUNTED_MAX:
        return _large(request, line)
    found = batch_of(desk.look, batch)
    small = found.jobs <= DRAWN_MAX
    members = desk.look.store.batch_members(batch) if small else []
    inside = [member for member in members if member.uuid != batch]
    return rendered(
        request,
        "batch",
        title=found.name or f"batch #{found.id}",
        here="batches",
        batch=found,
        over=found.state in TERMINAL,
        progress=bar(
            [
                ("succeeded", found.states[State.SUCCEEDED]),
                ("failed", found.ended - found.states[State.SUCCEEDED]),
                ("free", found.jobs - found.ended),
            ],
            label=f"{found.ended} of {found.jobs} have ended",
        ),
        states=[(state, found.states[state]) for state in State],
        small=small,
        members=inside[:LISTED_MAX],
        many=len(inside),
        graph=graph.drawn(inside, base_of(request)),
        now=desk.look.store.now(),
        retryable=any(found.states[state] for state in (State.FAILED, State.CANCELLED)),
        **_reported(found, members, desk.look.store.rates() if small else []),
    )


def _line(desk: Desk, batch: UUID) -> BatchLine:
    """Return a batch, its members counted as far as a list of batches does.

    Raises:
        JobNotFound: There is no batch of that id.
    """
    number = desk.look.get(batch).id
    found = desk.look.batches(limit=1, before_id=number + 1)
    if not found or found[0].id != number:
        raise JobNotFound(batch)
    return found[0]


def _large(request: Request, line: BatchLine) -> Response:
    """Show a batch whose jobs nobody can count while a person waits."""
    capped = line.members >= COUNT_MAX
    return rendered(
        request,
        "large_batch",
        title=line.name or f"batch #{line.id}",
        here="batches",
        batch=line,
        over=line.state in TERMINAL,
        progress=None if capped else _progress(line.members - line.left, line.left),
        count_max=COUNT_MAX,
        now=desk_of(request).look.store.now(),
    )


def _reported(batch: BatchState, members: list[Member], rates: list[StartRate]) -> dict[str, Any]:
    """Return the report of a batch, and its picture; nothing where nothing has run."""
    record = record_of(members, rates) if batch.jobs and members else None
    if record is None or not record.attempts:
        return {"report": None, "gantt": None}
    report = BatchReport.of(record)
    found = {member.id: member for member in members}
    return {"report": report, "gantt": gantt.drawn(record.attempts, found, report)}


def _progress(ended: int, left: int) -> Any:
    return bar([("succeeded", ended), ("free", left)], label=f"{ended} of {ended + left} ended")


def _of(request: Request) -> str:
    return str(request.path_params["batch"])


routes.post("/batches/{batch}/cancel", Scope.OPERATE)(
    changing("/batches/{batch}", lambda request, _: cancel(request, _of(request)), "cancel_a_batch")
)
routes.post("/batches/{batch}/retry", Scope.OPERATE)(
    changing("/batches/{batch}", lambda request, _: retry(request, _of(request)), "retry_a_batch")
)
routes.post("/batches/{batch}/close", Scope.OPERATE)(
    changing("/batches/{batch}", lambda request, _: close(request, _of(request)), "close_a_batch")
)
