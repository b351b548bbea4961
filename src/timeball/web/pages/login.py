"""Signing in and out, the theme, the zone, and the files that pages are made of."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from timeball.web.desk import desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope, contained
from timeball.web.sessions import AGE_MAX_S, COOKIE
from timeball.web.shell import (
    THEME_COOKIE,
    THEMES,
    asset_bytes,
    back,
    base_of,
    fields_of,
    packed,
    rendered,
)
from timeball.web.zones import ZONE_COOKIE, settled

routes = Routes()
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_YEAR_S: Final = 31_536_000


@routes.get("/login", Scope.OPEN)
def show_login(request: Request) -> Response:
    """Ask for a token."""
    following = request.query_params.get("next", "")
    return rendered(request, "login", title="Sign in", next=following, wrong=False)


@routes.post("/login", Scope.OPEN)
async def sign_in(request: Request) -> Response:
    """Begin a session for who shows a token."""
    fields = await fields_of(request)
    gate = desk_of(request).gate
    token = gate.tokens.of(fields.get("token", [""])[0].strip())
    overview = f"{base_of(request)}/"
    following = _own_path(fields.get("next", [""])[0], overview)
    if token is None:
        page = {"title": "Sign in", "next": following, "wrong": True}
        return rendered(request, "login", status=400, **page)
    secret = gate.sessions.begin(token, old=request.cookies.get(COOKIE))
    if following == overview and Scope.READ not in contained(token.scopes):
        following = f"{overview}submit"  # the one page that such a token opens
    answer = RedirectResponse(following, 303)
    _set(request, answer, COOKIE, secret, int(AGE_MAX_S))
    return answer


@routes.post("/logout", Scope.OPEN)
def sign_out(request: Request) -> Response:
    """End a session."""
    desk_of(request).gate.sessions.end(request.cookies.get(COOKIE, ""))
    answer = back(request, "/login")
    _set(request, answer, COOKIE, "", 0)
    return answer


@routes.post("/theme", Scope.OPEN)
async def choose_theme(request: Request) -> Response:
    """Remember light, dark, or what the system has."""
    theme = (await fields_of(request)).get("theme", [""])[0]
    answer = back(request, "/")
    if theme in THEMES:
        _set(request, answer, THEME_COOKIE, theme, _YEAR_S, script=True)
    return answer


@routes.post("/zone", Scope.OPEN)
async def choose_zone(request: Request) -> Response:
    """Remember in which zone to tell times, and go back to where that was chosen."""
    fields = await fields_of(request)
    value = settled(fields.get("zone", [""])[0])
    following = _own_path(fields.get("next", [""])[0], f"{base_of(request)}/")
    answer = RedirectResponse(following, 303)
    if value is not None:
        _set(request, answer, ZONE_COOKIE, value, _YEAR_S)
    return answer


@routes.get("/static/{name}", Scope.OPEN)
def show_asset(request: Request, name: str) -> Response:
    """Give a file that pages are made of; its address changes when it does."""
    content = asset_bytes(name)
    if content is None:
        raise Problem(404, "no such file")
    answer = packed(request, content, _TYPES[name.rpartition(".")[2]])
    answer.headers["cache-control"] = f"public, max-age={_YEAR_S}, immutable"
    return answer


def _set(
    request: Request, answer: Response, name: str, value: str, age_s: int, *, script: bool = False
) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=age_s,
        path=base_of(request) or "/",
        secure=_is_over_tls(request),
        httponly=not script,
        samesite="strict",
    )


def _is_over_tls(request: Request) -> bool:
    """Return whether the browser sees TLS, also where a proxy ends it.

    Browsers send Sec-Fetch-Site over TLS and to their own machine, and otherwise not.
    """
    local = request.url.hostname in {"localhost", "127.0.0.1", "::1"}
    return request.url.scheme == "https" or (not local and "sec-fetch-site" in request.headers)


def _own_path(text: str, overview: str) -> str:
    """Return a path of this application; anything else leads to the overview."""
    fine = text.startswith(overview) and not text.startswith("//") and text.isprintable()
    return text if fine and "\\" not in text else overview
