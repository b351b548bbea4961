"""A standby of certify's own server, whose lag a scenario decides."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from timeball.certify.databases import conninfo, remove
from timeball.certify.queries import query
from timeball.certify.sessions import until
from timeball.store.postgres.binaries import find_binaries
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown
from timeball.store.postgres.server import DATA, LOCK, PASSWORD

_BACKUP: Final = ("-R", "-X", "stream", "-c", "fast", "--no-sync")


class Standby:
    """A running standby, which may take the place of its primary.

    Args:
        primary: Of the database on the server that it follows.
        server: What runs it.
        database: The name of the database.
    """

    def __init__(self, primary: str, server: EmbeddedPostgres, database: str) -> None:
        self.folder = server.data_folder
        self._primary = primary
        self._server = server
        self._database = database
        self.come_back()

    def catch_up(self) -> None:
        """Return once it shows all that is in the primary now."""
        ((end,),) = _asked(self._primary, "wal_end")
        until(lambda: _asked(self.dsn, "wal_reached", end=end) == [(True,)], "it catches up")

    def cut(self) -> None:
        """From here on it receives nothing."""
        _asked(self.dsn, "cut_primary")
        _asked(self.dsn, "reload")
        until(lambda: _asked(self.dsn, "wal_receivers") == [(0,)], "it receives nothing")

    def be_waited_for(self) -> None:
        """From here on its primary answers no commit before this one has it."""
        _asked(self._primary, "wait_for_standby")
        _asked(self._primary, "reload")
        until(lambda: _asked(self._primary, "waited_for") == [(1,)], "it is waited for")

    @contextmanager
    def stands_still(self) -> Iterator[None]:
        """Have it receive nothing while the block runs: the process that does stands still."""
        ((pid,),) = _asked(self.dsn, "wal_receiver")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def held_commits(self) -> int:
        """Return how many commits its primary keeps waiting until this one has them."""
        ((count,),) = _asked(self._primary, "held_commits")
        return int(count)

    def promote(self) -> None:
        """Be a primary from here on."""
        assert _asked(self.dsn, "promote") == [(True,)], "it was not promoted in time"

    def end(self) -> None:
        """Stop its server."""
        shutdown(self.folder)

    def come_back(self) -> None:
        """Start its server, as what it was; `dsn` may be another one then."""
        self.dsn = conninfo(self._server.start(), dbname=self._database)


@contextmanager
def following(own: Path, dsn: str, database: str, *, log: Path | None = None) -> Iterator[Standby]:
    """Lend a standby of an embedded server.

    Args:
        own: The folder of the server.
        dsn: Of a database there.
        database: Its name.
        log: An empty folder for what it writes ahead; None: beside its data.
    """
    folder = Path(tempfile.mkdtemp(prefix="timeball-standby-"))
    (folder / LOCK).touch()
    shutil.copy(own / PASSWORD, folder / PASSWORD)
    binaries = find_binaries()
    words = [str(binaries.folder / "pg_basebackup"), "-D", str(folder / DATA), *_BACKUP]
    words += [] if log is None else ["--waldir", str(log)]
    server = EmbeddedPostgres(folder, binaries=binaries, linger_s=0.0)
    try:
        subprocess.run([*words, "-d", dsn], check=True, capture_output=True)  # noqa: S603 - ours
        yield Standby(dsn, server, database)
    finally:
        remove(server, folder)


def _asked(dsn: str, name: str, **params: Any) -> list[tuple[Any, ...]]:
    connections = Connections(dsn)
    with connections.borrowed() as connection:
        cursor = connection.execute(query(name).encode(), params or None)
        rows = cursor.fetchall() if cursor.description else []
    connections.close()
    return rows
