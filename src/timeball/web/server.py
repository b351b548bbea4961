"""Serving the application: on this machine only, unless tokens say who else may ask."""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Final

import uvicorn
from fastapi import FastAPI

from timeball.errors import UsageError

_BACKLOG: Final = 128
_STOP_S: Final = 2
_CONNECTIONS_MAX: Final = 600


def bound(host: str, port: int, *, tokens: bool) -> socket.socket:
    """Return a socket that listens on an address.

    Args:
        host: A name or an address.
        port: 0 takes any that is free.
        tokens: Whether there are tokens: without, only loopback addresses will do.

    Raises:
        UsageError: Others could ask, and there is no token; or the host is unknown.
        OSError: The port is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UsageError(
            f"--host {host!r} is not known: write an address of this machine"
        ) from None
    family, kind, protocol, _, address = found[0]
    if not tokens and not ipaddress.ip_address(str(address[0])).is_loopback:
        raise UsageError(
            f"--host {host} lets other machines ask: say with --token-file who may, or serve on "
            "127.0.0.1; `timeball serve --new-token NAME` makes a token"
        )
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno or 0)
        raise OSError(f"port {port} of {host}: {why}; port 0 takes any that is free") from None
    return listening


def bound_file(path: Path) -> socket.socket:
    """Return a socket that listens on a file, which only this user can open.

    Raises:
        UsageError: Something else is there, or somebody serves on it.
    """
    if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
        raise UsageError(f"--socket {path}: something else is there")
    listening = socket.socket(socket.AF_UNIX)
    try:
        if path.exists():
            _clear(path)
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on any more."""
    with socket.socket(socket.AF_UNIX) as asking, suppress(ConnectionRefusedError):
        asking.connect(str(path))
        raise UsageError(f"--socket {path}: somebody serves there already")
    path.unlink()


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM."""
    _server(app).run(sockets=[listening])


@contextmanager
def served(app: FastAPI, listening: socket.socket) -> Iterator[str]:
    """Answer requests in a thread while the block runs; lend the address."""
    server = _server(app)
    thread = Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="timeball-web", daemon=True
    )
    thread.start()
    try:
        yield url_of(listening)
    finally:
        server.should_exit = True
        thread.join()


def url_of(listening: socket.socket) -> str:
    """Return where a browser finds what is served on a socket."""
    address = listening.getsockname()
    if isinstance(address, str):
        return f"unix:{address}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"http://{host}:{address[1]}/"


class _Server(uvicorn.Server):
    """Lets open pages go first: their streams never end, and would be cut off with a traceback."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._tide = app.state.desk.tide

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._tide.end()
        await super().shutdown(sockets)


def _server(app: FastAPI) -> _Server:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what clients say of where they come from is not believed
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_graceful_shutdown=_STOP_S,
        timeout_keep_alive=15,
    )
    return _Server(app, config)
