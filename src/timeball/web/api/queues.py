"""The API about queues."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from timeball.action.job_specs import checked_name
from timeball.web.addresses import Name
from timeball.web.api.models import Answered, DepthIn, QueueList, QueueOut, answer
from timeball.web.desk import caller_of, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("queues")


@routes.get("/api/v1/queues", Scope.READ, gives=QueueList)
def list_queues(request: Request) -> Response:
    """List queues with what waits and runs in them."""
    found = desk_of(request).look.queues()
    return answer(QueueList(queues=[QueueOut(**queue._asdict()) for queue in found]))


@routes.post("/api/v1/queues/{queue:path}/pause", Scope.OPERATE, gives=Answered, also=(404,))
def pause_queue(request: Request, queue: Name) -> Response:
    """Let no job of a queue start until it is resumed."""
    return answer(Answered(answer=pause(request, queue)))


@routes.post("/api/v1/queues/{queue:path}/resume", Scope.OPERATE, gives=Answered, also=(404,))
def resume_queue(request: Request, queue: Name) -> Response:
    """Let jobs of a paused queue start again."""
    return answer(Answered(answer=resume(request, queue)))


@routes.put("/api/v1/queues/{queue:path}/depth", Scope.ADMIN, gives=Answered, also=(404,))
def limit_queue_depth(request: Request, queue: Name, depth: DepthIn) -> Response:
    """Say beyond how many waiting jobs a queue takes no more."""
    return answer(Answered(answer=limit_depth(request, queue, depth.max_depth)))


def limit_depth(request: Request, queue: str, max_depth: int | None) -> str:
    """Limit how many jobs may wait in a queue, on record; return "set"."""
    desk, queue = desk_of(request), checked_name("queue", queue)

    def change() -> dict[str, Any]:
        desk.client.limit_depth(queue, max_depth)
        return {"max_depth": max_depth}

    before = {"max_depth": _facts(request, queue).get("max_depth")}
    caller = caller_of(request)
    desk.record(caller, "queue.depth", f"queue {queue}", before=before, change=change)
    return "set"


def pause(request: Request, queue: str) -> str:
    """Pause a queue on record; return "paused", or "was_paused" where it was before."""
    desk, caller = desk_of(request), caller_of(request)

    def change() -> dict[str, Any]:
        new = desk.client.pause_queue(queue, by=caller.name)
        return {"paused": True, "answer": "paused" if new else "was_paused"}

    return _changed(request, queue, "queue.pause", change)


def resume(request: Request, queue: str) -> str:
    """Resume a queue on record; return "resumed", or "was_not_paused"."""
    desk = desk_of(request)

    def change() -> dict[str, Any]:
        new = desk.client.resume_queue(queue)
        return {"paused": False, "answer": "resumed" if new else "was_not_paused"}

    return _changed(request, queue, "queue.resume", change)


def _changed(request: Request, queue: str, what: str, change: Any) -> str:
    before = {"paused": _facts(request, queue).get("paused_at") is not None}
    desk = desk_of(request)
    after = desk.record(caller_of(request), what, f"queue {queue}", before=before, change=change)
    return str(after["answer"])


def _facts(request: Request, name: str) -> dict[str, Any]:
    found = [queue for queue in desk_of(request).look.queues() if queue.name == name]
    return found[0]._asdict() if found else {}
