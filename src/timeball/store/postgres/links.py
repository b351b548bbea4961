"""Connections to a minder (minder.py), as its users hold them."""

from __future__ import annotations

import atexit
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from timeball.store.postgres.server import CONTROL, read_address

_LEAST_S = 0.02

# What a forked child must not keep open: it would count as a user, or hold a lock, for ever.
links: set[socket.socket] = set()
locks: set[int] = set()


def _let_go() -> None:
    """Closes this process's copies; the parent's connection and lock are not affected."""
    for link in links:
        link.close()
    for lock in locks:
        os.close(lock)
    links.clear()
    locks.clear()


os.register_at_fork(after_in_child=_let_go)
atexit.register(_let_go)


def connect(folder: Path, timeout_s: float) -> socket.socket | None:
    """A connection to the folder's minder, or None where none listens."""
    sockets = read_address(folder)
    if sockets is None:
        return None
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(max(timeout_s, _LEAST_S))
    try:
        link.connect(str(sockets / CONTROL))
    except OSError:
        link.close()
        return None
    return link


def ask(link: socket.socket, line: str) -> dict[str, Any] | None:
    """The minder's answer to one line, or None where it ended instead."""
    heard = b""
    with suppress(OSError):
        link.sendall(line.encode() + b"\n")
        while not heard.endswith(b"\n"):
            part = link.recv(65536)
            if not part:
                return None
            heard += part
        answer: dict[str, Any] = json.loads(heard)
        return answer
    return None


def is_open(link: socket.socket | None) -> bool:
    """Whether the minder still keeps its end: it says nothing more until it ends."""
    if link is None:
        return False
    try:
        link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
