"""Limits: how many at once, how many starts in a time, how far used up, and whether kept."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from timeball.core.limits import AT_ONCE_DEFAULT, Limit
from timeball.core.limits import Scope as LimitScope
from timeball.core.permits import Proof
from timeball.web.addresses import Name
from timeball.web.api.limits import change, limit_of, proven
from timeball.web.charts import bar
from timeball.web.desk import desk_of
from timeball.web.parts import part_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import changing, rendered

routes = Routes()
_PROOFS: Final = 50
_DIGITS_MAX: Final = 7


@routes.get("/limits", Scope.READ)
def show_limits(request: Request) -> Response:
    """Show every limit that was set."""
    found = desk_of(request).look.limits()
    part = part_of(request, found, lambda limit: f"{limit.scope} {limit.name}")
    return rendered(
        request,
        "limits",
        title="Limits",
        here="limits",
        part=part,
        limits=[(limit, _used(limit)) for limit in part.rows],
        default=AT_ONCE_DEFAULT,
    )


@routes.get("/limits/{about}/{limit:path}", Scope.READ)
def show_one_limit(request: Request, about: str, limit: Name) -> Response:
    """Show one limit, and what the record says of its rate."""
    shown = limit_of(request, about, limit)
    proof = proven(request, shown)
    return rendered(
        request,
        "limit",
        title=f"{about} {limit}",
        here="limits",
        limit=shown,
        used=_used(shown),
        default=AT_ONCE_DEFAULT,
        proof=proof,
        proofs=[(each, _room(each)) for each in proof.proofs[:_PROOFS]] if proof else [],
        now=desk_of(request).look.store.now(),
    )


def _room(proof: Proof) -> Any:
    """Return how full the fullest window was, drawn."""
    free = max(0, proof.allowed - proof.most)
    label = f"{proof.most} of {proof.allowed} starts in the fullest window"
    part = "failed" if proof.early else "succeeded"
    return bar([(part, proof.most), ("free", free)], label=label)


def _about(fields: dict[str, list[str]]) -> tuple[LimitScope, str]:
    """Return what a form is about."""
    try:
        scope = LimitScope(fields.get("scope", [""])[0])
    except ValueError:
        raise Problem(400, f"scope: write one of {', '.join(LimitScope)}") from None
    return scope, fields.get("name", [""])[0]


def _set(request: Request, fields: dict[str, list[str]]) -> str:
    at_once, rate = (fields.get(name, [""])[0].strip() for name in ("at_once", "rate"))
    given: dict[str, Any] = {"rate": rate} if rate else {}
    if at_once:
        if not (at_once.isascii() and at_once.isdigit() and len(at_once) <= _DIGITS_MAX):
            raise Problem(400, "at once: write a number")
        given["at_once"] = int(at_once)
    return change(request, *_about(fields), given)


def _lift(request: Request, fields: dict[str, list[str]]) -> str:
    which = fields.get("which", [""])[0]
    if which not in {"at_once", "rate"}:
        raise Problem(400, "which: write at_once or rate")
    change(request, *_about(fields), {which: None})
    return "lifted"


routes.post("/limits", Scope.ADMIN)(changing("/limits", _set, "set_one_limit"))
routes.post("/limits/lift", Scope.ADMIN)(changing("/limits", _lift, "lift_one_limit"))


def _used(limit: Limit) -> Any:
    """Return how much of a limit is used, drawn; None where it cannot be said in one number."""
    many_keys = limit.scope is LimitScope.KEY and limit.name.endswith("*")
    if limit.at_once is None or many_keys:
        return None
    free = max(0, limit.at_once - limit.used)
    label = f"{limit.used} of {limit.at_once} under way"
    return bar([("running", limit.used), ("free", free)], label=label)
