"""A warning where a database on another machine is spoken to without encryption."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from threading import Lock
from typing import Final

_log = logging.getLogger(__name__)
_lock: Final = Lock()
_told: Final[set[str]] = set()


def warn_if_plain(host: str, address: str, *, encrypted: bool) -> None:
    """Warn, once for each host, that others may read and change what is sent to it.

    Args:
        host: As the connection string names it; the folder of a Unix socket is on this machine.
        address: To which it has led; empty for a Unix socket.
        encrypted: Whether the connection is.
    """
    if encrypted or _is_here(host, address):
        return
    with _lock:
        known = host in _told
        _told.add(host)
    if not known:
        _log.warning(
            "the connection to the database on %s is not encrypted: whoever is on the way can read "
            "and change everything. Add sslmode=verify-full to its connection string",
            host,
        )


def _is_here(host: str, address: str) -> bool:
    if host.startswith(("/", "@")) or not (host or address):
        return True
    try:
        found = ip_address(address or host)
    except ValueError:
        return host == "localhost"
    return found.is_loopback
