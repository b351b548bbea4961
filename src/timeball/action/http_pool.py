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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from timeball.action.addresses import ALLOW_VARIABLE, Address, Allowed, Guard, literal
from timeball.action.failed import ActionFailed
from timeball.action.http_connection import Connection
from timeball.action.http_target import Target
from timeball.action.http_wire import Broken, TooSlow, Wire

CONNECTIONS_MAX: Final = 64
"""To one host at once, from one process."""

POOLS_MAX: Final = 256
IDLE_S: Final = 5.0

_pools: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Pools]] = WeakKeyDictionary()


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, in the order in which they are to be tried."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]


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
        self._pools: dict[_Key, _Pool] = {}
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
        self, target: Target, ca: str | None, asked: Allowed, *, connect_s: float
    ) -> AsyncIterator[Connection]:
        """Lend a connection to a target for one request.

        Raises:
            ActionFailed: It must not be connected to.
            Broken, TooSlow: It cannot be.
        """
        granted = os.environ.get(ALLOW_VARIABLE, "")
        key = _Key(target.scheme, target.host, target.port, ca, asked, granted)
        pool = self._pools.pop(key, None) or _Pool(key)
        self._pools[key] = pool  # the last is the one used last
        pool.users += 1
        try:
            async with pool.lent(connect_s) as connection:
                yield connection
        finally:
            pool.users -= 1
            self._shrink()

    def _shrink(self) -> None:
        surplus = len(self._pools) - POOLS_MAX
        if surplus > 0:
            unused = [key for key, pool in self._pools.items() if not pool.users]
            for key in unused[:surplus]:
                self._pools.pop(key).close()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.Event().wait()
        finally:
            _pools.pop(loop, None)  # this task holds its loop, which would be kept for ever
            while self._pools:
                self._pools.popitem()[1].close()


class _Pool:
    """The connections to one host."""

    def __init__(self, key: _Key) -> None:
        self.users = 0
        self._key = key
        self._guard = Guard(asked=key.asked, granted=Allowed.by_worker(key.granted))
        self._trust = _trust(key.ca) if key.scheme == "https" else None
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self._idle: dict[Connection, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def lent(self, connect_s: float) -> AsyncIterator[Connection]:
        """Lend one of them, or a new one."""
        async with self._room:
            connection = await self._rested() or Connection(await self._dialled(connect_s))
            kept = False
            try:
                yield connection
                kept = connection.rest()
            finally:
                if not kept:
                    connection.wire.abort()
            loop = asyncio.get_running_loop()
            if kept:
                self._idle[connection] = loop.call_later(IDLE_S, self._drop, connection)

    def close(self) -> None:
        """End those that nobody uses."""
        while self._idle:
            self._drop(next(iter(self._idle)))

    def _drop(self, connection: Connection) -> None:
        self._idle.pop(connection).cancel()
        connection.wire.abort()

    async def _rested(self) -> Connection | None:
        """Return the one used last on which nothing has come since; all others are ended."""
        while self._idle:
            connection, timer = self._idle.popitem()
            timer.cancel()
            if await _still_rests(connection):
                return connection
        return None

    async def _dialled(self, limit_s: float) -> Wire:
        try:
            async with asyncio.timeout(limit_s):
                addresses = await self._checked()
                return await self._first(addresses, limit_s / len(addresses))
        except TimeoutError:
            raise TooSlow("has not connected in time") from None

    async def _checked(self) -> list[Address]:
        host = self._key.host
        known = literal(host)
        try:
            addresses = [known] if known is not None else await resolve(host, self._key.port)
        except OSError as error:
            raise Broken(f"{host} has no address: {error.strerror}") from None
        # All of them: a name with one address that is not public is not to be trusted with others.
        for address in addresses:
            objection = self._guard.objection(host, address)
            if objection is not None:
                raise ActionFailed(objection, error_type="HttpRefused", again=False)
        if not addresses:
            raise Broken(f"{host} has no address")
        return addresses

    async def _first(self, addresses: list[Address], share_s: float) -> Wire:
        key = self._key
        *before, last = addresses
        for address in before:
            try:
                async with asyncio.timeout(share_s):
                    return await Wire.dial(address, key.port, trust=self._trust, name=key.host)
            except (Broken, TimeoutError):
                continue
        return await Wire.dial(last, key.port, trust=self._trust, name=key.host)


async def _still_rests(connection: Connection) -> bool:
    """Return whether nothing has come on a connection; else it is ended."""
    rests = False
    try:
        # Two turns of the loop, in which it sees and delivers what has arrived by now.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rests = connection.wire.rests
    finally:
        if not rests:
            connection.wire.abort()
    return rests


@lru_cache(maxsize=64)
def _trust(ca: str | None) -> ssl.SSLContext:
    """Return whom to trust; there is no way to trust everybody."""
    try:
        trust = ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        raise ActionFailed(
            f"ca is no certificate: {error}", error_type="HttpRefused", again=False
        ) from None
    trust.set_alpn_protocols(["http/1.1"])
    return trust
