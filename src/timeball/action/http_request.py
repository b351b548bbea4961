"""What an HTTP job sends and what counts as success: its arguments, checked when it is made.

The same check is made when a job is submitted and when it is carried out, for it may have been
written by another program or an older version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypedDict

from timeball.action.addresses import Allowed
from timeball.action.http_target import Target, check_shown
from timeball.action.secret import Secret
from timeball.core.redaction import holds_secret
from timeball.errors import UsageError

CAPTURE_MAX: Final = 40_000
"""Bytes of a response that can be kept: in whatever way they are written, they fit a result."""

SUCCESS: Final = ("2xx",)
RETRY: Final = (408, 425, 429, "5xx")
SIGNING_MAX: Final = 4
WAIT_MAX_S: Final = 3600.0
REDIRECTS_MAX: Final = 10
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[!-~]?|[!-~][ \t!-~]{0,8190}[!-~]")
_OURS: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade", "webhook-id", "webhook-signature", "webhook-timestamp"),
        *("traceparent", "accept-encoding"),
    }
)
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_CLASS: Final = re.compile(r"([1-5])xx")


class HttpOptions(TypedDict, total=False):
    """What `http` takes besides method and address; see there."""

    headers: Mapping[str, str | Secret]
    json: Any
    body: str
    auth: Secret | Sequence[str | Secret]
    sign: Secret | Sequence[Secret]
    success: Iterable[int | str]
    retry_on: Iterable[int | str]
    expect: Mapping[str, Any]
    allow: Iterable[str]
    ca: str
    connect_s: float
    read_s: float
    capture_bytes: int
    idempotency_header: str | None
    redirects: int
    traceparent: str


_LISTS: Final = frozenset({"success", "retry_on", "allow", "auth", "sign"})
NAMES: Final = frozenset({"method", "url"} | HttpOptions.__optional_keys__)
"""The arguments of an HTTP job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """The arguments of one HTTP job, checked. `target` is None where the address is a secret."""

    method: str
    url: str | Secret
    target: Target | None
    headers: Mapping[str, str | Secret]
    body: str | None
    json: Any
    has_json: bool
    auth: tuple[str | Secret, ...]
    sign: tuple[Secret, ...]
    success: frozenset[int]
    retry_on: frozenset[int]
    expect: Mapping[str, Any]
    allow: Allowed
    ca: str | None
    connect_s: float
    read_s: float
    capture_bytes: int
    idempotency_header: str | None
    redirects: int
    traceparent: str | None

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Self:
        """Return the request of a job's arguments.

        Raises:
            UsageError: What is wrong with one of them, and what to write instead.
        """
        method, url = args.get("method"), args.get("url")
        if not (isinstance(method, str) and method in METHODS):
            raise UsageError(f"method is {method!r}: write one of {', '.join(sorted(METHODS))}")
        allow = Allowed.of(_list("allow", args.get("allow", ())))
        if isinstance(url, str):
            check_shown(url)
        if "json" in args and "body" in args:
            raise UsageError("json and body are both the content of the request: pass one")
        return cls(
            method=method,
            url=url if isinstance(url, Secret) else str(url),
            target=None if isinstance(url, Secret) else Target.of(str(url), allow),
            headers=_headers(args.get("headers", {})),
            body=_text("body", args.get("body")),
            json=args.get("json"),
            has_json="json" in args,
            auth=_auth(args.get("auth")),
            sign=_sign(args.get("sign", ())),
            success=_statuses("success", args.get("success", SUCCESS)),
            retry_on=_statuses("retry_on", args.get("retry_on", RETRY)),
            expect=_expect(args.get("expect", {})),
            allow=allow,
            ca=_ca(args.get("ca")),
            connect_s=_seconds("connect_s", args.get("connect_s", 10.0)),
            read_s=_seconds("read_s", args.get("read_s", 30.0)),
            capture_bytes=_capture(args.get("capture_bytes", 16_384)),
            idempotency_header=_idempotency(args, method),
            redirects=_redirects(args.get("redirects", 0)),
            traceparent=_trace(args.get("traceparent")),
        )


def plain_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON will have them: whatever may be iterated is a list."""
    return {name: _plain(value) if name in _LISTS else value for name, value in args.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return value
    return list(value)


def _list(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is {given!r}: write a list")
    return list(given)


def _text(name: str, given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise UsageError(f"{name} is a {type(given).__name__}: write a text, or pass json=")
    return given


def _headers(given: Any) -> Mapping[str, str | Secret]:
    if not isinstance(given, Mapping):
        raise UsageError('headers is no table: write headers={"Name": "value"}')
    for name, value in given.items():
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise UsageError(f"header {str(name)[:40]!r}: write a name of letters, digits and -")
        if name.lower() in _OURS:
            raise UsageError(f"header {name} is set by Timeball itself: leave it out")
        if isinstance(value, Secret):
            continue
        # Not repeated, for it may be the secret that should not be here.
        if not (isinstance(value, str) and _VALUE.fullmatch(value)):
            raise UsageError(f"header {name}: write printable ASCII without line ends")
        if name.lower() in _CREDENTIALS or holds_secret(f"{name}: {value}"):
            raise UsageError(
                f"header {name} holds a secret, which would be stored with the job: pass "
                f'{name!r}: Secret("env:NAME"), or auth=Secret("env:NAME")'
            )
    return dict(given)


def _auth(given: Any) -> tuple[str | Secret, ...]:
    if given is None:
        return ()
    if isinstance(given, Secret):
        return (given,)
    match given:
        case [str() as user, Secret() as password] if ":" not in user and _VALUE.fullmatch(user):
            return (user, password)
    raise UsageError('auth: write Secret("env:TOKEN"), or ["user", Secret("env:PASSWORD")]')


def _sign(given: Any) -> tuple[Secret, ...]:
    keys = (given,) if isinstance(given, Secret) else tuple(_list("sign", given))
    if not all(isinstance(key, Secret) for key in keys) or len(keys) > SIGNING_MAX:
        raise UsageError(f'sign: write Secret("env:KEY"), or a list of up to {SIGNING_MAX}')
    return keys


def _statuses(name: str, given: Any) -> frozenset[int]:
    found: set[int] = set()
    for each in _list(name, given):
        group = _CLASS.fullmatch(each) if isinstance(each, str) else None
        if group is not None:
            first = 100 * int(group[1])
            found.update(range(first, first + 100))
        elif type(each) is int and 100 <= each <= 599:  # noqa: PLR2004 - what a status can be
            found.add(each)
        else:
            raise UsageError(f'{name} holds {each!r}: write a status such as 404, or "4xx"')
    return frozenset(found)


def _expect(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError('expect is no table: write such as expect={"/status": "ok"}')
    for pointer in given:
        if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
            raise UsageError(f'expect names {pointer!r}: write a JSON pointer such as "/status"')
    return dict(given)


def _ca(given: Any) -> str | None:
    if given is None:
        return None
    if not (isinstance(given, str) and "-----BEGIN CERTIFICATE-----" in given and given.isascii()):
        raise UsageError("ca is no certificate: pass the text of a PEM file, Path(...).read_text()")
    return given


def _seconds(name: str, given: Any) -> float:
    fits = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    if not fits or not 0 < given <= WAIT_MAX_S:
        raise UsageError(f"{name} is {given!r}: write seconds, above 0 and at most {WAIT_MAX_S:g}")
    return float(given)


def _capture(given: Any) -> int:
    if type(given) is not int or not 0 <= given <= CAPTURE_MAX:
        raise UsageError(f"capture_bytes is {given!r}: write 0 to {CAPTURE_MAX:,}")
    return given


def _idempotency(args: Mapping[str, Any], method: str) -> str | None:
    name = args.get("idempotency_header", None if method in SAFE else "Idempotency-Key")
    if name is None:
        return None
    if not (isinstance(name, str) and _NAME.fullmatch(name)) or name.lower() in _OURS:
        raise UsageError(f"idempotency_header is {name!r}: write a header's name, or None")
    return name


def _redirects(given: Any) -> int:
    if type(given) is not int or not 0 <= given <= REDIRECTS_MAX:
        raise UsageError(f"redirects is {given!r}: write how many to follow, 0 to {REDIRECTS_MAX}")
    return given


def _trace(given: Any) -> str | None:
    if given is not None and not (isinstance(given, str) and _TRACEPARENT.fullmatch(given)):
        raise UsageError(f"traceparent is {given!r}: write 00-TRACE-SPAN-FLAGS in small hex")
    return given
