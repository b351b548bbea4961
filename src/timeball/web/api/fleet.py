"""The API about workers, metrics, the record of changes, and the API itself."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Query, Request, Response

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
    text = exposition(Waiting(desk.look_connections, names).latest())
    return Response(text, media_type=CONTENT_TYPE)


@routes.get("/api/v1/openapi.json", Scope.READ, gives="application/json")
def describe_api(request: Request) -> Response:
    """Describe this API in the terms of OpenAPI."""
    return Response(json.dumps(request.app.openapi()), media_type="application/json")
