"""HTTP jobs: one request, its total time bounded, its answer judged.

What may go wrong is an `ActionFailed` of one of these types: HttpRefused (the address must not be
called, or the arguments are wrong), HttpStatus, HttpUnexpected (a body that is not as expected),
HttpTimeout, HttpBroken (no connection, a certificate for another name, a connection lost in the
middle).
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast

import msgspec

from timeball.action.addresses import Allowed
from timeball.action.context import Context
from timeball.action.failed import ActionFailed
from timeball.action.http_connection import Connection
from timeball.action.http_pool import Pools
from timeball.action.http_redirect import NEUTRAL, Hop, next_hop
from timeball.action.http_request import HttpRequest
from timeball.action.http_response import Capture, result_of
from timeball.action.http_target import Target
from timeball.action.http_wire import Broken, TooSlow
from timeball.action.secret import Secret, revealed
from timeball.action.webhook import signed_headers
from timeball.chance import new_uuid, now
from timeball.errors import UsageError
from timeball.observe.concealment import conceal, concealed


async def request(context: Context, args: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one HTTP job and return its result.

    Raises:
        ActionFailed: It has no success.
    """
    try:
        asked = HttpRequest.of(args)
        target = asked.target or _secret_target(cast("Secret", asked.url), asked.allow)
        headers, body = _content(asked, target, context)
    except (UsageError, ValueError) as error:
        raise ActionFailed(str(error), error_type="HttpRefused", again=False) from None
    hop = Hop(method=asked.method, target=target, headers=headers, body=body)
    for _ in range(asked.redirects + 1):
        status, locations, capture = await _answer(asked, hop)
        following = next_hop(asked, hop, status, locations)
        if following is None:
            return result_of(asked, status, capture)
        hop = following
    text = f"it was redirected more than {asked.redirects} times: raise redirects, or call the end"
    raise ActionFailed(text, error_type="HttpStatus", again=False)


async def _answer(asked: HttpRequest, hop: Hop) -> tuple[int, list[bytes], Capture]:
    """Return the status of an answer, where it redirects to, and the beginning of its body."""
    lent = Pools.here().lent(hop.target, asked.ca, asked.allow, connect_s=asked.connect_s)
    try:
        async with lent as connection:
            head = await connection.ask(
                hop.method, hop.target.path, headers=hop.headers, body=hop.body, read_s=asked.read_s
            )
            capture = Capture(head.headers, asked.capture_bytes)
            await _captured(connection, capture)
    except TooSlow as error:
        raise _failed("HttpTimeout", asked, hop, str(error)) from None
    except (Broken, zlib.error) as error:
        raise _failed("HttpBroken", asked, hop, str(error)) from None
    locations = [value for name, value in head.headers if name == b"location"]
    return head.status_code, locations, capture


async def _captured(connection: Connection, capture: Capture) -> None:
    """Keep the beginning of a body; the connection is ended on what is beyond it."""
    async with aclosing(connection.chunks()) as chunks:
        async for chunk in chunks:
            if not capture.add(chunk):
                break


def _content(
    asked: HttpRequest, target: Target, context: Context
) -> tuple[dict[str, str], bytes | None]:
    """Return the headers and the body as they are sent, secrets and all."""
    body = None if asked.body is None else asked.body.encode()
    headers = {"Host": target.authority, **NEUTRAL}
    if asked.has_json:
        body = msgspec.json.encode(revealed(asked.json))
        headers["Content-Type"] = "application/json"
    if asked.auth:
        headers["Authorization"] = _authorization(asked.auth)
    if asked.idempotency_header is not None:
        headers[asked.idempotency_header] = context.key
    headers["traceparent"] = _traceparent(asked.traceparent, context)
    if asked.sign:
        at_s = now().timestamp()
        keys = [key.reveal() for key in asked.sign]
        headers |= signed_headers(keys, id_=context.key, at_s=at_s, body=body or b"")
    for name, value in revealed(asked.headers).items():
        if not (value.isprintable() and value.isascii() and value == value.strip()):
            raise ValueError(f"the secret for header {name} is not printable ASCII")
        headers = {known: each for known, each in headers.items() if known.lower() != name.lower()}
        headers[name] = value
    return headers, body


def _authorization(auth: tuple[str | Secret, ...]) -> str:
    *user, secret = auth
    value = cast("Secret", secret).reveal()
    if not user:
        if not (value.isascii() and value.isprintable()):
            raise ValueError("the secret of auth is not printable ASCII")
        return f"Bearer {value}"
    pair = b64encode(f"{user[0]}:{value}".encode()).decode()
    conceal(pair, cast("Secret", secret).reference)
    return f"Basic {pair}"


def _traceparent(given: str | None, context: Context) -> str:
    """Return the trace of this attempt: the submitter's, else one of the job's own."""
    span = new_uuid().hex[16:]
    if given is None:
        return f"00-{context.id.hex}-{span}-01"
    version, trace, _, flags = given.split("-")
    return f"{version}-{trace}-{span}-{flags}"


def _secret_target(url: Secret, allow: Allowed) -> Target:
    try:
        return Target.of(url.reveal(), allow)
    except UsageError:  # whose text repeats a part of it
        raise UsageError(
            f"{url} is no address that may be called: store one in printable ASCII, http:// or "
            "https://, without user and password, and have allow name a host that is not public "
            "or a port that is not usual"
        ) from None


def _failed(error_type: str, asked: HttpRequest, hop: Hop, text: str) -> ActionFailed:
    # Of an address that is a secret, no part is shown.
    shown = asked.url if asked.target is None else hop.target
    return ActionFailed(concealed(f"{shown} {text}"), error_type=error_type, again=True)
