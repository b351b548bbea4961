"""The API about workers, metrics, the record of changes, and the API itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from fastapi import Query, Request, Response

from timeball.observe import families
from timeball.observe.board import Key
from timeball.observe.exposition import CONTENT_TYPE, exposition
from timeball.web.api.models import (
    NUMBER_MAX,
    OperationOut,
    OperationPage,
    WorkerList,
    WorkerOut,
    answer,
)
from timeball.web.desk import desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.worker.telemetry import Waiting

routes = Routes("fleet")
QUEUES_MAX: Final = 200
"""Queues with series of their own; a queue for each customer must not fill who keeps them."""

OTHER: Final = "other"
"""What all queues after the first `QUEUES_MAX` are called together."""


@routes.get("/api/v1/workers", Scope.READ, gives=WorkerList)
def list_workers(request: Request) -> Response:
    """List the workers that live, and the latest that do not."""
    found = desk_of(request).panorama.workers()
    return answer(WorkerList(workers=[WorkerOut(**each._asdict()) for each in found]))


@routes.get("/api/v1/operations", Scope.ADMIN, gives=OperationPage)
def list_operations(
    request: Request,
    before: Annotated[int | None, Query(ge=0, le=NUMBER_MAX)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """List what people have changed: who, what, from where, before and after."""
    found = desk_of(request).operations.page(before_id=before, limit=limit)
    more = found[-1].id if len(found) == limit else None
    page = OperationPage(operations=[OperationOut(**one._asdict()) for one in found], before=more)
    return answer(page)


@routes.get("/metrics", Scope.READ, gives=CONTENT_TYPE)
def show_metrics(request: Request) -> Response:
    """Tell Prometheus what waits, and whether the database answers."""
    desk = desk_of(request)
    names = [queue.name for queue in desk.look.queues()]
    found = Waiting(desk.look_connections, names).latest()
    return Response(exposition(bounded(found, names[:QUEUES_MAX])), media_type=CONTENT_TYPE)


@routes.get("/api/v1/openapi.json", Scope.READ, gives="application/json")
def describe_api(request: Request) -> Response:
    """Describe this API in the terms of OpenAPI."""
    return Response(json.dumps(request.app.openapi()), media_type="application/json")


def bounded(samples: Mapping[Key, list[int]], queues: Sequence[str]) -> dict[Key, list[int]]:
    """Return samples of which only some queues have their own; the others are one.

    Args:
        samples: The jobs of queues and the ages of their oldest, and what is of no queue.
        queues: Those that have their own.
    """
    own, found = {*queues, OTHER}, dict[Key, list[int]]()
    for (family, labels), numbers in samples.items():
        alone = not labels or labels[0] in own
        key = family, labels if alone else (OTHER, *labels[1:])
        join = max if family == families.OLDEST.name else sum
        found[key] = [join(pair) for pair in zip(found.get(key, [0]), numbers, strict=True)]
    return found
