"""How routes are declared: each once, with its scope. One without a scope cannot be built."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import RedirectResponse
from starlette.routing import Match
from starlette.types import Receive, Send
from starlette.types import Scope as Asked

from timeball.errors import JobNotFound, ScheduleNotFound
from timeball.web.desk import desk_of
from timeball.web.problems import MEDIA_TYPE, Problem, ProblemDetail, wants_page
from timeball.web.scopes import Scope

_Call = TypeVar("_Call", bound=Callable[..., Any])
_DIGITS_MAX: Final = 309
"""Of an integer in a body: more cannot be stored."""

_NO_TOKEN: Final = 401
_PROBLEM: Final[dict[str, Any]] = {
    "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetail.__name__}"}}}
}
_ALWAYS: Final = {400: "Bad request", 401: "No token", 403: "Not allowed", 422: "Not understood"}
_BODY: Final = {413: "A body that is too large"}
_STORE: Final = {503: "The database does not answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route: what is asked how, what it takes to be allowed to, and who answers."""

    method: str
    path: str
    scope: Scope
    call: Callable[..., Any]
    tag: str | None
    """Under which the description lists it; None: a page, which it does not list."""

    gives: type[BaseModel] | str
    """The model of its answer, or its media type."""

    status: int = 200
    also: tuple[int, ...] = ()
    """Of other answers, the statuses."""


class Routes:
    """The routes of one module.

    Args:
        tag: Under which the description lists them; None: pages, which it does not list.
    """

    def __init__(self, tag: str | None = None) -> None:
        self._tag = tag
        self.declared: list[Route] = []

    def get(self, path: str, scope: Scope, **facts: Any) -> Callable[[_Call], _Call]:
        """Declare the function below for GET; `facts` are fields of `Route`."""
        return self._declare("GET", path, scope, facts)

    def post(self, path: str, scope: Scope, **facts: Any) -> Callable[[_Call], _Call]:
        """Declare the function below for POST; `facts` are fields of `Route`."""
        return self._declare("POST", path, scope, facts)

    def put(self, path: str, scope: Scope, **facts: Any) -> Callable[[_Call], _Call]:
        """Declare the function below for PUT; `facts` are fields of `Route`."""
        return self._declare("PUT", path, scope, facts)

    def delete(self, path: str, scope: Scope, **facts: Any) -> Callable[[_Call], _Call]:
        """Declare the function below for DELETE; `facts` are fields of `Route`."""
        return self._declare("DELETE", path, scope, facts)

    def _declare(
        self, method: str, path: str, scope: Scope, facts: dict[str, Any]
    ) -> Callable[[_Call], _Call]:
        def declare(call: _Call) -> _Call:
            given = {"gives": "text/html", "tag": self._tag, **facts}
            self.declared.append(Route(method=method, path=path, scope=scope, call=call, **given))
            return call

        return declare


class GatedRoute(APIRoute):
    """A route whose caller is asked for before anything else of the request is read."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **facts: Any) -> None:
        extra = facts.get("openapi_extra") or {}
        self.scope = Scope(extra.get("x-scope", ""))  # a ValueError for a route without
        super().__init__(path, endpoint, **facts)

    async def handle(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answer a request for this path.

        Raises:
            Problem: Neither this route nor another of its path has the method that is asked for.
        """
        if scope["method"] not in (self.methods or ()):
            raise _refused(_methods(scope))
        await super().handle(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers requests: the gate, then the route's own handler."""
        answer, scope = super().get_route_handler(), self.scope

        async def gated(request: Request) -> Response:
            try:
                request.state.caller = desk_of(request).gate.admit(request, scope)
            except Problem as problem:
                if problem.status_code == _NO_TOKEN and wants_page(request):
                    return _to_login(request)
                raise
            try:
                return await answer(StrictRequest(request.scope, request.receive))
            except (JobNotFound, ScheduleNotFound):
                if request.method not in (allowed := _methods(request.scope)):
                    raise _refused(allowed) from None  # as /jobs/cancel, and no job is called so
                raise

        return gated


class StrictRequest(Request):
    """A request whose body is JSON as the standard has it: no name twice, no NaN."""

    async def json(self) -> Any:
        """Return the body's value.

        Raises:
            Problem: It is none, or means different things to different readers.
        """
        body = await self.body()
        try:
            return strict_json(body.decode(), "the body")
        except UnicodeDecodeError:
            raise Problem(400, "the body is not UTF-8") from None


def strict_json(text: str, what: str) -> Any:
    """Return a value of JSON as the standard has it; see `StrictRequest`.

    Args:
        text: The JSON.
        what: What problems call it.

    Raises:
        Problem: It is none, or means different things to different readers.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_no_number,
            parse_int=_int,
            parse_float=_float,
        )
    except (json.JSONDecodeError, RecursionError):
        raise Problem(400, f"{what} is not JSON, or nested too deep") from None


def add_routes(app: FastAPI, routes: Iterable[Route]) -> None:
    """Add routes to an application, with all that its description says of them."""
    app.router.route_class = GatedRoute
    for route in routes:
        app.router.add_api_route(
            route.path,
            route.call,
            methods=[route.method],
            status_code=route.status,
            response_model=None,
            response_class=Response,
            tags=[route.tag] if route.tag else None,
            include_in_schema=route.tag is not None,
            operation_id=route.call.__name__,
            summary=(route.call.__doc__ or "").strip().splitlines()[0].rstrip("."),
            responses=_responses(route),
            openapi_extra={
                "x-scope": route.scope.value,
                "security": [] if route.scope is Scope.CALLBACK else [{"token": []}],
            },
        )


def _methods(scope: Asked) -> set[str]:
    """Return all methods that the path of a request can be asked with.

    A name may hold slashes, so that several paths can fit: the longest says most of it.
    """
    routes = [
        route
        for route in scope["app"].router.routes
        if isinstance(route, GatedRoute) and route.matches(scope)[0] is not Match.NONE
    ]
    path = max((route.path for route in routes), key=len)
    return {method for route in routes if route.path == path for method in route.methods or ()}


def _refused(allowed: set[str]) -> Problem:
    text = ", ".join(sorted(allowed))
    return Problem(405, f"ask with {text}", headers={"Allow": text})


def _to_login(request: Request) -> Response:
    """Return the way to where one signs in, and back from there."""
    base_path = desk_of(request).base_path
    root = base_path + request.scope.get("root_path", "")
    here = base_path + request.url.path + (f"?{request.url.query}" if request.url.query else "")
    following = urlencode({"next": here if request.method == "GET" else f"{root}/"})
    return RedirectResponse(f"{root}/login?{following}", 303)


def _responses(route: Route) -> dict[int | str, dict[str, Any]]:
    own: dict[str, Any] = {"description": "The answer"}
    if isinstance(route.gives, str):
        own["content"] = {route.gives: {"schema": {"type": "string"}}}
    else:
        own["model"] = route.gives
    body = {} if route.method == "GET" else _BODY
    problems = {**_ALWAYS, **body, **_STORE, **dict.fromkeys(route.also, "See detail")}
    return {
        route.status: own,
        **{status: {**_PROBLEM, "description": text} for status, text in problems.items()},
    }


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Problem(400, "a name stands twice in one object of the JSON")
    return found


def _no_number(text: str) -> NoReturn:
    raise Problem(400, f"{text} is no JSON: leave it out, or write null")


def _int(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise Problem(400, f"an integer in the JSON has more than {_DIGITS_MAX} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Problem(400, "a number in the JSON is too large: no reader could hold it")
    return value
