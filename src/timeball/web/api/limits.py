"""The API about limits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import Request, Response
from pydantic import Field

from timeball.action.job_specs import checked_name
from timeball.core.limits import Limit
from timeball.core.limits import Scope as LimitScope
from timeball.core.permits import Proof
from timeball.store.postgres.panorama import Proven
from timeball.web.addresses import Name
from timeball.web.api.models import Answered, LimitIn, LimitList, LimitOut, Model, answer
from timeball.web.desk import caller_of, desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("limits")


class ProofOut(Model):
    """The starts on record against one rate."""

    name: str = Field(description="Of the limit, such as queue:mail; of a pattern that of a key")
    rate: str
    window_s: float
    starts: int
    most: int = Field(description="The most in any window")
    allowed: int
    early: int = Field(description="Starts that the rate did not allow yet")


class ProofList(Model):
    """What began lately under one limit: of the last hour, and of 5,000 turns at most."""

    since: datetime = Field(description="Of turns that were granted after then, and have ended")
    rates: list[ProofOut]


@routes.get("/api/v1/limits", Scope.READ, gives=LimitList)
def list_limits(request: Request) -> Response:
    """List the limits that were set, and how many jobs count against each."""
    found = desk_of(request).look.limits()
    return answer(LimitList(limits=[LimitOut(**_facts(limit)) for limit in found]))


@routes.get("/api/v1/limits/{about}/{limit:path}/proof", Scope.READ, gives=ProofList, also=(404,))
def prove_rate(request: Request, about: str, limit: Name) -> Response:
    """Say from the record how many starts any window of a rate had at most, lately."""
    found = proven(request, limit_of(request, about, limit))
    if found is None:
        raise Problem(404, f"no rate is set for the {about} {limit!r}")
    return answer(ProofList(since=found.since, rates=[_proof(each) for each in found.proofs]))


@routes.put("/api/v1/limits", Scope.ADMIN, gives=Answered)
def set_limit(request: Request, limit: LimitIn) -> Response:
    """Set or lift a limit: how many at once, how many starts in a time, or both."""
    given = limit.model_dump(include=limit.model_fields_set & {"at_once", "rate"})
    return answer(Answered(answer=change(request, limit.scope, limit.name, given)))


def limit_of(request: Request, about: str, name: str) -> Limit:
    """Return a limit.

    Raises:
        Problem: None is set for that.
    """
    for limit in desk_of(request).look.limits():
        if (limit.scope, limit.name) == (about, name):
            return limit
    raise Problem(404, f"no limit is set for the {about[:64]} {name!r}")


def proven(request: Request, limit: Limit) -> Proven | None:
    """Return what began lately under a limit on starts; None where it is not on starts."""
    return desk_of(request).panorama.proven(limit.scope, limit.name)


def change(request: Request, scope: LimitScope, name: str, given: dict[str, Any]) -> str:
    """Set or lift a limit on record; return "set"."""
    desk, name = desk_of(request), checked_name(scope.value, name)

    def set_() -> dict[str, Any]:
        about: dict[str, Any] = {scope.value: name}
        desk.client.limit(**about, **given)
        return given

    before = [_facts(one) for one in desk.look.limits() if one[:2] == (scope, name)]
    facts = before[0] if before else {}
    target = f"{scope} {name}"
    desk.record(caller_of(request), "limit.set", target, before=facts, change=set_)
    return "set"


def _facts(limit: Limit) -> dict[str, Any]:
    return {**limit._asdict(), "rate": None if limit.rate is None else str(limit.rate)}


def _proof(proof: Proof) -> ProofOut:
    return ProofOut(
        name=proof.name,
        rate=str(proof.rate),
        window_s=float(proof.rate.per_s),
        starts=proof.starts,
        most=proof.most,
        allowed=proof.allowed,
        early=len(proof.early),
    )
