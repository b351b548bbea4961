"""A proxy between a program and the server, which cuts it off: whenever told, or at a commit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

COMMIT = b"COMMIT\0"
Cut = Literal["before", "after", "never"]


class Proxy:
    """Hands on bytes both ways.

    `at_commit`: "before" cuts a connection in place of handing its COMMIT on, "after" once the
    server has answered it, in place of handing on the answer.
    """

    def __init__(self, dsn: str) -> None:
        facts = conninfo_to_dict(dsn)
        self._server = str(Path(str(facts["host"])) / f".s.PGSQL.{facts.get('port') or 5432}")
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=port)
        self.at_commit: Cut = "never"
        self.swallows = False
        """Whether it falls silent there instead: it takes what comes, and hands nothing on."""

        self.cuts = 0
        self.asked = 0
        """How often somebody has sent something to the server."""

        self.muted = False
        """Whether it swallows what it should hand on, and lets nobody know."""

        self._down = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def down(self) -> None:
        """Cut every connection, and each new one at once, until `up`."""
        self._down = True
        self._cut_all()

    def up(self) -> None:
        self._down = False

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.down()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._down:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            with self._lock:
                self._open |= {client, server}
            for way in ((client, server, "before"), (server, client, "after")):
                thread = threading.Thread(target=self._hand_on, args=way)
                self._threads.append(thread)
                thread.start()
            if self._down:
                self._cut_all()

    def _hand_on(self, source: socket.socket, target: socket.socket, moment: Cut) -> None:
        with suppress(OSError):
            while chunk := source.recv(1 << 16):
                if self.at_commit == moment and COMMIT in chunk and self._cuts():
                    break
                self.asked += moment == "before"
                if not self.muted:
                    target.sendall(chunk)
        self._cut(source, target)

    def _cuts(self) -> bool:
        """Note that a commit is meant to get lost; return whether its connection is cut for it."""
        self.at_commit = "never"
        self.cuts += 1
        self.muted = self.muted or self.swallows
        return not self.swallows

    def _cut(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with self._lock:
            self._open -= set(ends)

    def _cut_all(self) -> None:
        with self._lock:
            ends = list(self._open)
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(dsn: str) -> Iterator[Proxy]:
    """A proxy in front of the server behind `dsn`, which is reached by a Unix socket."""
    proxy = Proxy(dsn)
    try:
        yield proxy
    finally:
        proxy.close()
