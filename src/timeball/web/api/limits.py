"""The API about limits."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from timeball.core.limits import Limit
from timeball.web.api.models import Answered, LimitIn, LimitList, LimitOut, answer
from timeball.web.desk import caller_of, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("limits")


@routes.get("/api/v1/limits", Scope.READ, gives=LimitList)
def list_limits(request: Request) -> Response:
    """List the limits that were set, and how many jobs count against each."""
    found = desk_of(request).look.limits()
    return answer(LimitList(limits=[LimitOut(**_facts(limit)) for limit in found]))


@routes.put("/api/v1/limits", Scope.ADMIN, gives=Answered)
def set_limit(request: Request, limit: LimitIn) -> Response:
    """Set or lift a limit: how many at once, how many starts in a time, or both."""
    desk = desk_of(request)
    given = limit.model_dump(include=limit.model_fields_set & {"at_once", "rate"})

    def change() -> dict[str, Any]:
        about: dict[str, Any] = {limit.scope.value: limit.name}
        desk.client.limit(**about, **given)
        return given

    before = [_facts(one) for one in desk.look.limits() if one[:2] == (limit.scope, limit.name)]
    facts = before[0] if before else {}
    target = f"{limit.scope} {limit.name}"
    desk.record(caller_of(request), "limit.set", target, before=facts, change=change)
    return answer(Answered(answer="set"))


def _facts(limit: Limit) -> dict[str, Any]:
    return {**limit._asdict(), "rate": None if limit.rate is None else str(limit.rate)}
