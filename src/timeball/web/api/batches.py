"""The API about batches."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request, Response
from pydantic import Field

from timeball.client import Client
from timeball.core.batches import BatchState
from timeball.core.states import State
from timeball.errors import JobNotFound
from timeball.web.api.models import NUMBER_MAX, Answered, Model, answer
from timeball.web.desk import caller_of, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("batches")


class BatchLineOut(Model):
    """A batch in a list."""

    id: int
    uuid: UUID
    name: str
    state: State
    is_open: bool
    created_at: datetime
    ended_at: datetime | None
    members: int = Field(description="Counted up to 10,000")
    left: int = Field(description="Of them, those that have not ended")


class BatchPage(Model):
    """A page of batches, newest first."""

    batches: list[BatchLineOut]
    before: int | None = Field(description="Ask with it for the page that follows; null: none")


class BatchOut(Model):
    """A batch with how many of its jobs are in each state, all from one snapshot."""

    id: int
    uuid: UUID
    name: str
    state: State
    is_open: bool
    created_at: datetime
    ended_at: datetime | None
    states: dict[State, int]
    gone: int


@routes.get("/api/v1/batches", Scope.READ, gives=BatchPage)
def list_batches(
    request: Request,
    before: Annotated[int | None, Query(ge=0, le=NUMBER_MAX)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """List batches, newest first."""
    found = desk_of(request).look.batches(limit=limit, before_id=before)
    lines = [BatchLineOut.model_validate(each, from_attributes=True) for each in found]
    more = found[-1].id if len(found) == limit else None
    return answer(BatchPage(batches=lines, before=more))


@routes.get("/api/v1/batches/{batch}", Scope.READ, gives=BatchOut, also=(404,))
def show_batch(request: Request, batch: UUID) -> Response:
    """Show one batch."""
    found = batch_of(desk_of(request).look, batch)
    return answer(BatchOut.model_validate(found, from_attributes=True))


@routes.post("/api/v1/batches/{batch}/cancel", Scope.OPERATE, gives=Answered, also=(404,))
def cancel_batch(request: Request, batch: UUID) -> Response:
    """Keep all jobs of a batch from starting, and ask those that run to stop (-> cancelled)."""
    return answer(Answered(answer=cancel(request, str(batch))))


@routes.post("/api/v1/batches/{batch}/retry", Scope.OPERATE, gives=Answered, also=(404, 409))
def retry_batch(request: Request, batch: UUID) -> Response:
    """Start the failed part of a batch again (-> pending, waiting)."""
    return answer(Answered(answer=retry(request, str(batch))))


@routes.post("/api/v1/batches/{batch}/close", Scope.OPERATE, gives=Answered, also=(404,))
def close_batch(request: Request, batch: UUID) -> Response:
    """Let an open batch end with the last of its jobs."""
    return answer(Answered(answer=close(request, str(batch))))


def batch_of(look: Client, batch: UUID) -> BatchState:
    """Return a batch as it is now.

    Raises:
        JobNotFound: There is none of that id.
    """
    return look.store.batch(batch)


def cancel(request: Request, text: str) -> str:
    """Cancel a batch on record; return "cancelled"."""

    def change(batch: UUID) -> dict[str, Any]:
        made = desk_of(request).client.get_batch(batch).cancel()
        return {"answer": "cancelled", **{str(word): count for word, count in made.items()}}

    return _changed(request, text, "batch.cancel", change)


def close(request: Request, text: str) -> str:
    """Close a batch on record; return "closed", or "was_closed"."""

    def change(batch: UUID) -> dict[str, Any]:
        new = desk_of(request).client.get_batch(batch).close()
        return {"answer": "closed" if new else "was_closed"}

    return _changed(request, text, "batch.close", change)


def retry(request: Request, text: str) -> str:
    """Start the failed part of a batch again on record; return "revived" or "nothing"."""

    def change(batch: UUID) -> dict[str, Any]:
        jobs = desk_of(request).client.get_batch(batch).retry()
        return {"answer": "revived" if jobs else "nothing", "jobs": jobs}

    return _changed(request, text, "batch.retry", change)


def _changed(request: Request, text: str, what: str, change: Any) -> str:
    desk = desk_of(request)
    try:
        batch = UUID(text)
    except ValueError:
        raise JobNotFound(text[:64]) from None
    before = {"state": batch_of(desk.look, batch).state}
    after = desk.record(
        caller_of(request), what, f"batch {batch}", before=before, change=lambda: change(batch)
    )
    return str(after["answer"])
