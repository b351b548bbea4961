"""Processes that use an embedded PostgreSQL, and what can be seen of it from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg

from timeball.store.postgres import server
from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import (
    status,
)
from timeball.store.postgres.server import try_lock

# A process that uses the server: says its DSN, then waits for its end.
USER = """
import sys
from pathlib import Path
from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import EmbeddedPostgres
found = Binaries(folder=Path(sys.argv[2]), version=sys.argv[3])
with EmbeddedPostgres(Path(sys.argv[1]), binaries=found, linger_s=0.05) as db:
    print(db.dsn, flush=True)
    sys.stdin.read()
"""


def eventually(holds: Callable[[], bool], within_s: float = 15.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Dead, or dead and not yet collected by whoever adopted it."""
    try:
        return re.search(r"\) Z ", Path(f"/proc/{pid}/stat").read_text()) is not None
    except FileNotFoundError:
        return True


def minder_of(folder: Path) -> int:
    postmaster = status(folder).pid
    return int(Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[1])


def is_left_alone(folder: Path) -> bool:
    """Whether no process of the server or its minder is alive."""
    held = [try_lock(folder / name) for name in (server.LOCK, server.SERVER_LOCK)]
    for lock in held:
        if lock is not None:
            os.close(lock)
    return None not in held


def open_files(pid: int) -> set[Path]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them is among them
            found.add(entry.readlink())
    return found


def sockets_of(dsn: str) -> Path:
    return Path(psycopg.conninfo.conninfo_to_dict(dsn)["host"])  # type: ignore[arg-type]


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def answers(dsn: str) -> bool:
    try:
        return ask(dsn, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


class User:
    """Another process that uses the server."""

    def __init__(self, folder: Path, found: Binaries) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder), str(found.folder), found.version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def dsn(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()
