"""What holds of every request and every answer, whatever the route: hosts, sizes, headers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from timeball.web.problems import Problem, problem_of, problem_response

BODY_MAX: Final = 1024 * 1024
"""Bytes of a request's body."""

BODY_S: Final = 10.0
"""A body that takes longer to arrive is not waited for."""

LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,64}\]|[a-z0-9._-]{1,253})(?::[0-9]{1,5})?")

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)


class Guard:
    """Wraps an application; nothing gets past it in either direction.

    Args:
        app: What is guarded.
        hosts: Names under which it may be asked for; ports do not matter.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _Exchange(receive, send)
        try:
            self._check(Headers(scope=scope))
            _check_address(scope)
            await self._app(scope, guarded.receive, guarded.send)
        except Problem as problem:
            await guarded.answer(scope, problem)
        except Exception as error:
            # It goes on to whoever keeps the log; the client is told as little as can be.
            await guarded.answer(scope, problem_of(error))
            raise

    def _check(self, headers: Headers) -> None:
        names = headers.getlist("host")
        found = _HOST.fullmatch(names[0].lower()) if len(names) == 1 else None
        if found is None or found[1] not in self._hosts:
            raise Problem(
                421,
                "this is not served under that name: `timeball serve --allow-host NAME`, or "
                "create_app(hosts=[…]), allows one",
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > BODY_MAX:
            raise Problem(413, f"a body may have {BODY_MAX:,} bytes")


def _check_address(scope: Scope) -> None:
    """Refuse what no name in the database can hold, before anybody looks for it."""
    if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        raise Problem(400, "an address cannot hold U+0000")


class _Exchange:
    """One request's body and its answer, both bounded."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._size, self._whole = 0, False
        self._until: float | None = None
        self._begun = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()  # waits until the client goes
        if self._until is None:  # for the whole body: drop by drop, one would take for ever
            self._until = asyncio.get_running_loop().time() + BODY_S
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, f"the body did not arrive within {BODY_S:.0f} s") from None
        self._size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._size > BODY_MAX:
            raise Problem(413, f"a body may have {BODY_MAX:,} bytes")
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            headers = MutableHeaders(scope=message)
            _add(headers, SECURITY)
            headers.setdefault("cache-control", "no-store")
        await self._send(message)

    async def answer(self, scope: Scope, problem: Problem) -> None:
        """Tell of a problem, unless an answer has begun."""
        if not self._begun:
            await problem_response(problem)(scope, self._receive, self.send)


def _add(headers: MutableHeaders, pairs: Iterable[tuple[str, str]]) -> None:
    for name, value in pairs:
        headers[name] = value
