"""The bytes of one connection, whether any are left that nobody asked for, and waits with an end.

Everything that has come is kept where it can be seen: what is left behind in a buffer of some
layer, such as the second of two TLS records, would be taken for the answer to the next request.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Final, Self

from timeball.action.addresses import Address

_FULL: Final = 1 << 17
"""Bytes that wait to be taken; beyond that the other side has to wait."""


class Broken(Exception):
    """There is no connection, or it was lost; the text says how."""


class TooSlow(Exception):
    """The other side has not connected or answered in time."""


class Wire(asyncio.Protocol):
    """One connection. `dial` makes it."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._ended = self._resting = self._paused = False
        self._error: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._raw: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def dial(
        cls, address: Address, port: int, *, trust: ssl.SSLContext | None, name: str
    ) -> Self:
        """Return a connection to an address.

        Args:
            address: Where to.
            port: Where to.
            trust: Whose certificates are good; None for no encryption.
            name: For whom the certificate has to be.

        Raises:
            Broken: Nobody is there, or its certificate is not good.
        """
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(cls, str(address), port)
        except OSError as error:
            raise Broken(f"no connection to {address}: {error.strerror or error}") from None
        if trust is not None:
            await wire.encrypt(trust, name)
        return wire

    async def encrypt(self, trust: ssl.SSLContext, name: str) -> None:
        """Speak TLS from now on."""
        raw = self._raw
        assert raw is not None
        try:
            transport = await asyncio.get_running_loop().start_tls(
                raw, self, trust, server_hostname=name
            )
        except BaseException as error:
            raw.abort()
            if isinstance(error, OSError | ssl.SSLError):
                raise Broken(f"no encrypted connection: {error}") from None
            raise
        self._transport = transport
        if self._received or transport is None:  # said before it was encrypted, by whomever
            self.abort()
            raise Broken("the server spoke before the connection was encrypted")

    def write(self, data: bytes) -> None:
        """Have `data` sent. Nobody waits for that: an answer may come first."""
        self._resting = False
        if self._transport is not None:
            self._transport.write(data)

    async def take(self, limit_s: float) -> bytes:
        """Return what has come and was not taken, or what comes next; nothing at the end.

        Raises:
            TooSlow: Nothing has come in so many seconds.
            Broken: The connection was lost.
        """
        if not (self._received or self._ended):
            self._news = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(limit_s):
                    await self._news
            except TimeoutError:
                raise TooSlow("has not answered in time") from None
            finally:
                self._news = None
        data = bytes(self._received)
        self._received.clear()
        if not data and self._error is not None:
            raise Broken(f"the connection was lost: {self._error}")
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def rest(self) -> bool:
        """Return whether nothing is under way on it; from now on whatever comes ends it."""
        sent = self._raw is not None and not self._raw.get_write_buffer_size()
        self._resting = sent and not self._received and not self._ended
        return self._resting

    @property
    def rests(self) -> bool:
        """Whether it was laid to rest and nothing has come since."""
        return self._resting

    def abort(self) -> None:
        """End it at once."""
        self._ended, self._resting = True, False
        if self._raw is not None:
            self._raw.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop's word that it stands."""
        assert isinstance(transport, asyncio.Transport)
        self._raw = self._transport = transport

    def data_received(self, data: bytes) -> None:
        """The loop's word that something has come."""
        if self._resting:  # nobody has asked for it, so nobody can say what it answers
            self.abort()
            return
        self._received += data
        if len(self._received) > _FULL and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._tell()

    def eof_received(self) -> None:
        """The loop's word that no more comes."""
        self._ended, self._resting = True, False
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """The loop's word that it is gone."""
        self._ended, self._resting = True, False
        self._error = exc
        self._tell()

    def _tell(self) -> None:
        if self._news is not None:
            with suppress(asyncio.InvalidStateError):
                self._news.set_result(None)
