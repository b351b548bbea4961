"""A small HTTP server for monitoring: GET only, on this machine only, and bounded.

Whoever asks slowly, asks much or does not listen loses the connection after a moment, and can
keep at most one of a few threads busy until then. Nothing here waits for a job, nor a job for it.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from threading import BoundedSemaphore, Thread
from typing import Final, NamedTuple

from timeball.errors import UsageError

CLIENTS_MAX: Final = 4
REQUEST_MAX: Final = 8_192
"""Bytes of a request."""

DEADLINE_S: Final = 5.0
"""For one connection, from its first byte to its last."""

_PATIENCE_S: Final = 1.0
"""How long a connection waits for a thread before it is closed, and `close` for who is served."""

_BACKLOG: Final = 16
_END: Final = b"\r\n\r\n"


class Answer(NamedTuple):
    """What a request is answered with."""

    status: int
    body: str
    content_type: str = "text/plain; charset=utf-8"


_REASONS: Final = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
    503: "Service Unavailable",
}  # fmt: skip


def address(text: str) -> tuple[str, int]:
    """Return host and port of ``[HOST:]PORT``; the host is 127.0.0.1 where none is given.

    Raises:
        UsageError: It is something else, or an address that other machines can reach.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(f"{text!r} is no address: write PORT or HOST:PORT, such as 9300")
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise UsageError(
            f"{host} can be reached from other machines, and metrics have no password: "
            "write 127.0.0.1, and put a proxy in front"
        )
    return host, int(port)


class Endpoint:
    """Serves some paths in threads of its own, from `start` to `close`.

    Args:
        host: Of this machine.
        port: 0 for any that is free.
        pages: For each path what makes its answer. Called from any thread.

    Raises:
        OSError: The port is taken.
    """

    def __init__(self, host: str, port: int, pages: Mapping[str, Callable[[], Answer]]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._pages = pages
        self._stop, self._stopped = socket.socketpair()
        self._places = BoundedSemaphore(CLIENTS_MAX)
        self._thread = Thread(target=self._serve, name="timeball-endpoint", daemon=True)

    @property
    def url(self) -> str:
        """Where it is."""
        host, port = self._listener.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more; requests that are being answered have a moment to end."""
        self._stop.send(b"!")
        self._thread.join()
        until = time.monotonic() + _PATIENCE_S
        for _ in range(CLIENTS_MAX):
            self._places.acquire(timeout=max(0.0, until - time.monotonic()))
        for each in (self._listener, self._stop, self._stopped):
            each.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while self._stopped not in {key.fileobj for key, _ in selector.select()}:
                self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again, or there are no descriptors left
            return
        if not self._places.acquire(timeout=_PATIENCE_S):
            connection.close()
            return
        client = Thread(target=self._talk, args=(connection,), name="timeball-client", daemon=True)
        try:
            client.start()
        except RuntimeError:  # there are no threads left
            connection.close()
            self._places.release()

    def _talk(self, connection: socket.socket) -> None:
        until = time.monotonic() + DEADLINE_S
        try:
            with connection:
                head = _received(connection, until)
                connection.settimeout(max(0.001, until - time.monotonic()))
                connection.sendall(self._answered(head))
        except OSError:
            return  # who asked has gone, or was too slow
        finally:
            self._places.release()

    def _answered(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target, _, version = rest.partition(" ")
        page = self._pages.get(target.partition("?")[0])
        if _END not in head or not version.startswith("HTTP/1."):
            answer = Answer(400, "this is no request of HTTP/1.1\n")
        elif method not in {"GET", "HEAD"}:
            answer = Answer(405, "only GET\n")
        elif page is None:
            answer = Answer(404, f"there is {', '.join(sorted(self._pages))}\n")
        else:
            answer = page()
        return _response(answer, with_body=method != "HEAD")


def _received(connection: socket.socket, until: float) -> bytes:
    """Return what has come until the end of the head, or of patience; all of it is bounded."""
    head = b""
    while _END not in head and len(head) < REQUEST_MAX:
        connection.settimeout(max(0.001, until - time.monotonic()))
        more = connection.recv(REQUEST_MAX)
        if not more:
            break
        head += more
    return head


def _response(answer: Answer, *, with_body: bool) -> bytes:
    body = answer.body.encode()
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        "\r\n",
    ]
    return "\r\n".join(lines).encode() + (body if with_body else b"")
