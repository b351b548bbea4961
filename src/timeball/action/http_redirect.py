"""Where a redirect leads, if it is to be followed at all, and what is sent there.

A job that may send nothing secret to other origins sends them nothing of its own: no header that
it names, no content, and no method that changes anything. Each address is checked as the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final
from urllib.parse import urljoin

from timeball import __version__
from timeball.action.failed import ActionFailed
from timeball.action.http_request import METHODS, SAFE, HttpRequest
from timeball.action.http_target import PORTS, Target
from timeball.errors import UsageError

_POST: Final = frozenset({"POST"})
_BECOMES_GET: Final[Mapping[int, frozenset[str]]] = MappingProxyType(
    {301: _POST, 302: _POST, 303: METHODS - {"GET", "HEAD"}, 307: frozenset(), 308: frozenset()}
)
"""By the status of a redirect, the methods that turn into a GET without content."""

NEUTRAL: Final = MappingProxyType(
    {"User-Agent": f"timeball/{__version__}", "Accept-Encoding": "identity", "Accept": "*/*"}
)
"""Headers that tell nothing about the job."""

_OF_CONTENT: Final = frozenset(
    {"content-type", "idempotency-key", "webhook-id", "webhook-signature", "webhook-timestamp"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One request on the way: secrets in it are revealed."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes | None


def next_hop(asked: HttpRequest, hop: Hop, status: int, locations: Sequence[bytes]) -> Hop | None:
    """Return what to request after an answer; None if it is the last.

    Args:
        asked: The job's request.
        hop: What was answered.
        status: The answer's.
        locations: Each Location header of it.

    Raises:
        ActionFailed: It leads to where this job must not go.
    """
    followed = asked.redirects and status in _BECOMES_GET and status not in asked.success
    if not followed or len(locations) != 1:
        return None
    target = _target(asked, hop, status, locations[0].decode("latin-1"))
    method, body, headers = hop.method, hop.body, dict(hop.headers)
    if method in _BECOMES_GET[status]:
        method, body = "GET", None
        omitted = _OF_CONTENT | {(asked.idempotency_header or "").lower()}
        headers = {name: value for name, value in headers.items() if name.lower() not in omitted}
    if _origin(target) != _origin(hop.target):
        if method not in SAFE or body is not None:
            raise _refused(asked, status, f"{method} is not repeated at another origin")
        headers = dict(NEUTRAL)
    headers = {**headers, "Host": target.authority}
    return replace(hop, method=method, target=target, headers=headers, body=body)


def _target(asked: HttpRequest, hop: Hop, status: int, location: str) -> Target:
    before = hop.target
    try:
        url = urljoin(f"{before.scheme}://{before.authority}{before.path}", location)
        target = Target.of(url, asked.allow)
    except (UsageError, ValueError) as error:
        raise _refused(asked, status, str(error)) from None
    if target.port not in PORTS | {before.port}:
        raise _refused(asked, status, f"port {target.port} is not one that the job has named")
    if before.scheme == "https" and target.scheme != "https":
        raise _refused(asked, status, f"{target} is not encrypted, and {before} was")
    return target


def _origin(target: Target) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port


def _refused(asked: HttpRequest, status: int, why: str) -> ActionFailed:
    # Of an address that is a secret, a redirect may repeat a part.
    told = f"{asked.url} leads to where it must not" if asked.target is None else why
    text = f"the server answered {status}, a redirect that is not followed: {told}"
    return ActionFailed(text, error_type="HttpRefused", again=False)
