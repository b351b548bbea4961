"""The address of a request, read strictly: what two programs may read differently is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from timeball.action.addresses import Allowed, Guard, host_of, literal
from timeball.core.redaction import holds_secret, redacted
from timeball.errors import UsageError

URL_MAX: Final = 8_000
PORT_MAX: Final = 65_535
PORTS: Final = frozenset({80, 443, 8080, 8443})
"""Ports that need not be allowed by naming the host or its address in `allow`."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PLAIN: Final = re.compile(r"[!#-\[\]-~]+")  # printable ASCII but quotes, backslash, space


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query."""

    @classmethod
    def of(cls, url: str, allow: Allowed) -> Self:
        """Return the parts of an address.

        Raises:
            UsageError: It is not one that a job may call; the text says why.
        """
        if not isinstance(url, str):
            raise UsageError(f"url is a {type(url).__name__}: write a text")
        if not (len(url) <= URL_MAX and _PLAIN.fullmatch(url)):
            raise UsageError(
                f"url {redacted(url[:80])!r}: write at most {URL_MAX:,} characters of plain ASCII, "
                "others as %XX, and a host in another alphabet in its xn-- form"
            )
        try:
            parts = urlsplit(url)
        except ValueError as error:  # of what should be an address in brackets
            raise UsageError(f"url {redacted(url[:80])!r}: {error}") from None
        if parts.scheme not in _DEFAULT_PORTS:
            raise UsageError(f"url begins with {parts.scheme[:20]!r}: write http:// or https://")
        if "@" in parts.netloc:
            raise UsageError("url holds a user or a password: pass auth=(user, Secret(...))")
        host = host_of(parts.hostname or "")
        if "[" in parts.netloc and ":" not in host:
            raise UsageError(f"{host[:80]!r} is no address: brackets are for those like [::1]")
        target = cls(
            scheme=parts.scheme,
            host=host,
            port=_port(parts.netloc, _DEFAULT_PORTS[parts.scheme]),
            path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        )
        target._check(allow)
        return target

    def _check(self, allow: Allowed) -> None:
        address = literal(self.host)
        if self.port not in PORTS and not allow:
            raise UsageError(
                f"port {self.port} is none of {', '.join(map(str, sorted(PORTS)))}: where it is "
                f'meant, allow the host by name, allow=["{self.host}"]'
            )
        if address is not None:
            # What the worker allows is not known here, and it looks again when it connects.
            objection = Guard(asked=allow, granted=allow).objection(self.host, address)
        elif (self.host == "localhost" or self.host.endswith(".localhost")) and not allow:
            objection = f'{self.host} is not public: where it is meant, allow=["{self.host}"]'
        else:
            objection = None
        if objection is not None:
            raise UsageError(f"{self}: {objection}")

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """The address without its query, which may hold what is nobody's business."""
        path = self.path.partition("?")[0]
        return f"{self.scheme}://{self.authority}{path}"


def check_shown(url: str) -> None:
    """Raise `UsageError` if an address holds a secret in plain text, for all readers of the job."""
    if holds_secret(url):
        raise UsageError(
            f"url {redacted(url)[:80]!r} holds a secret, which would be stored: send it in a "
            'header, headers={"...": Secret("env:NAME")}, or pass the whole url as a Secret'
        )


def _port(netloc: str, default: int) -> int:
    text = netloc.rpartition("]")[2].rpartition(":")[2] if ":" in netloc.rpartition("]")[2] else ""
    if not text:
        return default
    port = int(text) if text.isdigit() and len(text) <= len("65535") else 0
    if not 0 < port <= PORT_MAX:
        raise UsageError(f"port {text[:20]!r}: write a number from 1 to 65535")
    return port
