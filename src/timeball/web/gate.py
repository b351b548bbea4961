"""Who asks, and whether they may: asked once per request, before anything of it is read."""

from __future__ import annotations

import ipaddress
import logging
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from starlette.requests import Request

from timeball.action.callback_address import is_proof
from timeball.action.secret import SecretUnavailable, callback_keys
from timeball.web.problems import Problem
from timeball.web.scopes import Scope, contained
from timeball.web.sessions import COOKIE, Sessions
from timeball.web.tokens import Token, Tokens

_log = logging.getLogger(__name__)

SAFE: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""

_RELAYED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
"""Headers of which a proxy on this machine, whose callers are anywhere, sets one or other."""

_TOKEN_MAX: Final = 256
_FORMS: Final = frozenset(
    {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
)


class Proof(StrEnum):
    """How a caller shows who they are."""

    BEARER = "bearer"  # a token, with the request
    SESSION = "session"
    LOCAL = "local"  # nobody but this machine's users can ask, and no token was set
    ADDRESS = "address"  # the proof in the address of a callback
    NONE = "none"


class Caller(NamedTuple):
    """Who asks."""

    name: str
    """Of the token, or "local"."""

    scopes: frozenset[Scope]
    origin: str
    """The address that the request came from."""

    proof: Proof

    def may(self, scope: Scope) -> bool:
        """Return whether they may do something."""
        return scope in self.scopes


class Gate:
    """Lets callers in who show a token that has the scope of the route.

    Args:
        tokens: Without any, only this machine is let in: over a loopback address or a socket.
        sessions: Of people who have shown one in a browser.
    """

    def __init__(self, tokens: Tokens, sessions: Sessions) -> None:
        self.tokens, self.sessions = tokens, sessions

    def admit(self, request: Request, scope: Scope) -> Caller:
        """Return who asks.

        Raises:
            Problem: 401 without a token, 403 where it has not the scope, the page that asks is
                not ours, or the address of a callback is forged.
        """
        if scope is Scope.CALLBACK:
            return _called(request)
        caller = self._caller(request)
        if scope not in caller.scopes:
            if caller.proof is Proof.NONE:
                raise Problem(
                    401,
                    "send Authorization: Bearer TOKEN, or sign in at /login",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            raise Problem(403, f"this needs the scope {scope}, which {caller.name!r} has not")
        if request.method not in SAFE and caller.proof is not Proof.BEARER:
            _check_origin(request)
        return caller

    def _caller(self, request: Request) -> Caller:
        origin = _origin(request)
        proof, token = self._shown(request)
        if token is not None:
            self.tokens.use(token)
            return Caller(token.name, contained(token.scopes), origin, proof)
        if not self.tokens and _is_local(request):
            return Caller("local", contained([Scope.ADMIN]), origin, Proof.LOCAL)
        return Caller("nobody", contained([]), origin, Proof.NONE)

    def _shown(self, request: Request) -> tuple[Proof, Token | None]:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            # Whoever shows a token is judged by it alone, whatever cookie comes along.
            text = text.strip()
            return Proof.BEARER, self.tokens.of(text) if len(text) <= _TOKEN_MAX else None
        cookie = request.cookies.get(COOKIE, "")
        token = self.sessions.token(cookie) if 0 < len(cookie) <= _TOKEN_MAX else None
        return Proof.SESSION, None if token is None or token.is_over else token


def _called(request: Request) -> Caller:
    """Return who calls a callback; whoever knows its address may, from any page or program."""
    name, given = (request.path_params[part] for part in ("callback", "proof"))
    try:
        proven = is_proof(callback_keys(), UUID(name), given)
    except ValueError:  # no uuid at all
        proven = False
    except SecretUnavailable as error:
        _log.error("a call cannot be taken: %s", error)
        raise Problem(503, "no calls are taken here: the log says why") from None
    if not proven:
        raise Problem(403, "this is the address of no callback: call the one that was given, whole")
    return Caller(f"callback {name}", frozenset({Scope.CALLBACK}), _origin(request), Proof.ADDRESS)


def _origin(request: Request) -> str:
    return request.client.host if request.client else "socket"


def _is_local(request: Request) -> bool:
    """Return whether only this machine can have sent a request."""
    if any(name in request.headers for name in _RELAYED):
        return False
    here, there = request.scope.get("server"), request.scope.get("client")
    if here is not None and here[1] is None:
        return there is None  # a Unix socket has no port, and its clients no address
    return here is not None and there is not None and _is_loopback(here[0], there[0])


def _is_loopback(*addresses: str) -> bool:
    try:
        return all(ipaddress.ip_address(address).is_loopback for address in addresses)
    except ValueError:
        return False


def _check_origin(request: Request) -> None:
    """Refuse a change that a page of somebody else asks for in this browser's name.

    Browsers send Origin with every POST; from our own forms it is "null", because our pages send no
    referrer, and then Sec-Fetch-Site tells, which no page can set. What sends no Origin is no
    browser; but then it must not look like a form, which old ones send without.
    """
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    if origin is None:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS
        foreign = site not in {"none", "same-origin"} or form or COOKIE in request.cookies
    elif origin == "null":
        foreign = site != "same-origin"
    else:
        foreign = _netloc(origin) != request.headers.get("host", "").lower()
    if foreign:
        raise Problem(403, "this request does not come from a page of the dashboard")


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # half an address
        return ""
