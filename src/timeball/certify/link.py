"""A network link of our own to a server: it passes all, stands still, loses all, or is cut.

Of bytes that are on their way when it stands still nothing is lost: as TCP would do it, they are
handed on when it passes again, unless it was cut meanwhile.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from threading import Condition, Thread
from typing import Final

from timeball.certify.databases import address, conninfo

_CHUNK: Final = 1 << 16
_HOST: Final = "127.0.0.1"
_JOIN_S: Final = 10.0


class Way(StrEnum):
    """What becomes of what is sent."""

    PASS = "pass"  # noqa: S105 - a verb
    HOLD = "hold"  # nothing arrives, and nobody is told
    MUTE = "mute"  # what the server answers does not arrive, and what it is sent does
    SWALLOW = "swallow"  # nothing arrives ever, on those that are open now; new ones are refused
    CUT = "cut"  # connections are reset, and new ones too


_CLOSED: Final = frozenset({Way.SWALLOW, Way.CUT})


class Link:
    """One way to a server of our own, which is reached by a Unix socket.

    Args:
        dsn: Of a database there.
    """

    def __init__(self, dsn: str) -> None:
        self._server = address(dsn)
        self._listener = socket.create_server((_HOST, 0))
        port = self._listener.getsockname()[1]
        self.dsn = conninfo(dsn, host=_HOST, port=str(port))
        """Of the same database, by this link."""

        self._way = Way.PASS
        self._changed = Condition()
        self._open: set[socket.socket] = set()
        self._lost: set[socket.socket] = set()
        self.swallowed = 0
        """Bytes that the server has said and nobody has heard."""

        self._threads: list[Thread] = []
        self._start(self._accept)

    @property
    def way(self) -> Way:
        """What becomes of what is sent."""
        return self._way

    def turn(self, way: Way) -> None:
        """Have something else become of all that is sent from now on."""
        with self._changed:
            self._way = way
            self._changed.notify_all()
            if way is Way.SWALLOW:
                self._lost |= self._open
            if way is Way.CUT:
                self._reset()

    def lead(self, dsn: str) -> None:
        """Lead to another server; connections to the one before are cut."""
        with self._changed:
            self._server = address(dsn)
            self._reset()

    def close(self) -> None:
        """Cut all and end."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.turn(Way.CUT)
        for thread in self._threads:
            thread.join(_JOIN_S)

    def _start(self, run: Callable[[], None]) -> None:
        thread = Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                server = None if self._way in _CLOSED else self._connected()
                if server is None:
                    client.close()
                    continue
                self._open |= {client, server}
            self._start(partial(self._hand_on, client, server, {Way.HOLD}))
            self._start(partial(self._hand_on, server, client, {Way.HOLD, Way.MUTE}))

    def _connected(self) -> socket.socket | None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._server))
        except OSError:  # it is away
            server.close()
            return None
        return server

    def _hand_on(self, source: socket.socket, target: socket.socket, held: set[Way]) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                with self._changed:
                    self._changed.wait_for(lambda: self._way not in held)
                    lost = source in self._lost
                    # Only what the server says is held while the way is mute.
                    self.swallowed += len(chunk) if lost and Way.MUTE in held else 0
                if not lost:
                    target.sendall(chunk)
        with self._changed:
            ends = {source, target}
            for end in ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            # The other direction still uses them: closed by whoever comes last.
            gone = ends - self._open
            self._open -= ends
            self._lost -= ends
        for end in gone:
            end.close()

    def _reset(self) -> None:
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def linked(dsn: str) -> Iterator[Link]:
    """Lend a link to a server of our own."""
    link = Link(dsn)
    try:
        yield link
    finally:
        link.close()
