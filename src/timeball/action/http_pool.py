"""Connections of HTTP jobs: checked when they are made, kept for each host apart.

A host's name is looked up once, every address that it has is checked, and the connection goes to
one of just these addresses; names that change between the look and the connection gain nothing.
The name itself stays in the Host header and in the check of the certificate. Proxies of the
environment are not used.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import httpcore2
from httpcore2 import AnyIOBackend, AsyncConnectionPool, AsyncNetworkBackend, AsyncNetworkStream

from timeball.action.addresses import ALLOW_VARIABLE, Address, Allowed, Guard, literal
from timeball.action.failed import ActionFailed
from timeball.action.http_target import Target

CONNECTIONS_MAX: Final = 64
"""To one host at once, from one process."""

POOLS_MAX: Final = 256
IDLE_S: Final = 5.0

SocketOption = Any
_pools: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Pools]] = WeakKeyDictionary()


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, in the order in which they are to be tried."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]


class GuardedBackend(AsyncNetworkBackend):
    """Connects only where a guard has no objection."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's protocol
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> AsyncNetworkStream:
        """Return a connection to one of the host's addresses.

        Raises:
            ActionFailed: One of them must not be connected to.
            httpcore2.ConnectError, httpcore2.ConnectTimeout: None answers.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._checked(host, port)
                return await self._first(addresses, port, timeout)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("no connection in time") from None

    async def _checked(self, host: str, port: int) -> list[Address]:
        known = literal(host)
        try:
            addresses = [known] if known is not None else await resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} has no address: {error.strerror}") from None
        # All of them: a name with one address that is not public is not to be trusted with others.
        for address in addresses:
            objection = self._guard.objection(host, address)
            if objection is not None:
                raise ActionFailed(objection, error_type="HttpRefused", again=False)
        if not addresses:
            raise httpcore2.ConnectError(f"{host} has no address")
        return addresses

    async def _first(
        self, addresses: list[Address], port: int, limit_s: float | None
    ) -> AsyncNetworkStream:
        share_s = None if limit_s is None else limit_s / len(addresses)
        for number, address in enumerate(addresses, start=1):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout=share_s)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise AssertionError("there is at least one address")


class _Key(NamedTuple):
    """What has to be the same for two jobs to share connections."""

    scheme: str
    host: str
    port: int
    ca: str | None
    asked: Allowed
    granted: str


class Pools:
    """The connections of one event loop. Closed when the loop ends and cancels its tasks."""

    def __init__(self) -> None:
        self._pools: dict[_Key, AsyncConnectionPool] = {}
        self._users: dict[_Key, int] = {}
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @classmethod
    def here(cls) -> Pools:
        """Return those of the running loop."""
        loop = asyncio.get_running_loop()
        found = _pools.get(loop)
        if found is None:
            found = _pools[loop] = cls()
        return found

    @asynccontextmanager
    async def lent(
        self, target: Target, ca: str | None, asked: Allowed
    ) -> AsyncIterator[AsyncConnectionPool]:
        """Lend the pool for a target."""
        granted = os.environ.get(ALLOW_VARIABLE, "")
        key = _Key(target.scheme, target.host, target.port, ca, asked, granted)
        pool = self._pools.pop(key, None) or _pool(key)
        self._pools[key] = pool  # the last is the one used last
        self._users[key] = self._users.get(key, 0) + 1
        try:
            yield pool
        finally:
            self._users[key] -= 1
            await self._shrink()

    async def _shrink(self) -> None:
        idle = [key for key in self._pools if not self._users.get(key)]
        surplus = idle[: max(0, len(self._pools) - POOLS_MAX)]
        for key in surplus:
            del self._users[key]
        # All taken out before anything is awaited, for meanwhile others may be lent them.
        for pool in [self._pools.pop(key) for key in surplus]:
            await pool.aclose()

    async def _keep(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            while self._pools:
                _, pool = self._pools.popitem()
                await pool.aclose()


def _pool(key: _Key) -> AsyncConnectionPool:
    granted = Allowed.by_worker(key.granted)
    return AsyncConnectionPool(
        ssl_context=_trust(key.ca) if key.scheme == "https" else None,
        max_connections=CONNECTIONS_MAX,
        keepalive_expiry=IDLE_S,
        network_backend=GuardedBackend(Guard(asked=key.asked, granted=granted)),
    )


@lru_cache(maxsize=64)
def _trust(ca: str | None) -> ssl.SSLContext:
    """Return whom to trust; there is no way to trust everybody."""
    if ca is None:
        return httpcore2.default_ssl_context()
    try:
        return ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        raise ActionFailed(
            f"ca is no certificate: {error}", error_type="HttpRefused", again=False
        ) from None
