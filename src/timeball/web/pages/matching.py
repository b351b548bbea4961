"""All jobs that a search finds: how many there are, and whether they are really to be changed."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from timeball.core.records import Job
from timeball.core.states import State
from timeball.web.api.jobs import page_of
from timeball.web.api.matching import Matched, MatchingIn, changed, states_of
from timeball.web.api.models import NUMBER_MAX
from timeball.web.desk import Desk, desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.search import Search, understood
from timeball.web.shell import back, fields_of, may, rendered

routes = Routes()
_COUNTED: Final = 250
"""Jobs that are counted in each state: if there are more, so much is said."""

_LOOKED: Final = 1_000
"""Jobs of each state that are looked at for them."""

_SHOWN: Final = 8
_ACTIONS: Final = {"cancel": Scope.OPERATE, "revive": Scope.OPERATE, "delete": Scope.ADMIN}


class Found(NamedTuple):
    """The jobs of one state that match."""

    state: State
    jobs: int
    some: list[Job]
    more: bool
    """Whether there may be others."""


@routes.get("/jobs/matching", Scope.OPERATE)
def ask_about_matching(request: Request) -> Response:
    """Say how many jobs a search finds that an action is for, and ask."""
    given, desk = request.query_params, desk_of(request)
    text, action = given.get("q", "").strip(), given.get("action", "cancel")
    if action not in _ACTIONS:
        raise Problem(400, f"action: write one of {', '.join(_ACTIONS)}")
    search = understood(text)
    newest = desk.look.jobs(limit=1)
    up_to = _number(given.get("up_to", "")) or (newest[0].id if newest else 0)
    meant = [] if search.faults or search.path else states_of(action, search.only.get("state"))
    only = {name: value for name, value in search.only.items() if name != "state"}
    every = [_found(desk, state, up_to, only) for state in meant]
    found = [each for each in every if each.jobs or each.more]
    return rendered(
        request,
        "matching",
        title=f"{action.capitalize()} jobs",
        here="jobs",
        query=text,
        action=action,
        allowed=may(request, _ACTIONS[action]),
        faults=[*search.faults, *(["write what many jobs have in common"] if search.path else [])],
        found=found,
        jobs=sum(each.jobs for each in found),
        more=any(each.more for each in found),
        up_to=up_to,
        mark=given.get("mark", ""),
        some=[job for each in found for job in each.some][:_SHOWN],
        now=desk.look.store.now(),
    )


def _found(desk: Desk, state: State, up_to: int, only: dict[str, Any]) -> Found:
    """Count the jobs of a state that match, as far as a person waits for it."""
    where = {**only, "state": state}
    page, more = page_of(desk, where, limit=_COUNTED, before_id=up_to + 1, looked=_LOOKED)
    return Found(state, len(page), page[:_SHOWN], more=more is not None)


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) < len(str(NUMBER_MAX))
    return int(text) if plain else None


def _change(request: Request, action: str, fields: dict[str, list[str]]) -> Response:
    given = {name: values[0] for name, values in fields.items()}
    text, up_to = given.get("q", "").strip(), _number(given.get("up_to", ""))
    search = _sure(understood(text), up_to)
    about = {"every": not search.only, "up_to": up_to, "mark": given.get("mark") or None}
    try:
        which = MatchingIn.model_validate({**search.only, **about})
    except ValidationError:
        raise Problem(400, "this is no form of the dashboard") from None
    found = changed(request, action, which)
    if found.away:
        raise _cut_short(found)
    if found.mark is None:
        return back(request, f"/jobs?{urlencode({'q': text})}", "matched")
    left = {"q": text, "action": action, "up_to": up_to, "mark": found.mark}
    return back(request, f"/jobs/matching?{urlencode(left)}", "some_left")


def _cut_short(found: Matched) -> Problem:
    """Return what tells a person how far a change has come."""
    done = ", ".join(f"{count:,} {each}" for each, count in found.answers.items())
    rest = "go back and press the button again for those that are left"
    return Problem(
        503, f"the database went away: {done} until then; {rest if found.mark else 'none is left'}"
    )


def _sure(search: Search, up_to: int | None) -> Search:
    """Return a search that was understood whole: else more jobs would be changed than are meant.

    Raises:
        Problem: It was not, or does not say up to which job.
    """
    if search.faults or search.path:
        raise Problem(400, "; ".join(search.faults) or "write what many jobs have in common")
    if up_to is None:
        raise Problem(400, "up_to: write the number of the newest job that is meant")
    return search


def _declare(action: str, scope: Scope) -> None:
    async def handler(request: Request) -> Response:
        return await run_in_threadpool(_change, request, action, await fields_of(request))

    handler.__name__, handler.__doc__ = f"{action}_all_matching", "Change all jobs that match."
    routes.post(f"/jobs/matching/{action}", scope)(handler)


for _action, _scope in _ACTIONS.items():
    _declare(_action, _scope)
