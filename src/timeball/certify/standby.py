"""A standby of certify's own server, whose lag a scenario decides."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from timeball.certify.databases import conninfo
from timeball.certify.queries import query
from timeball.certify.sessions import until
from timeball.store.postgres.binaries import find_binaries
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, reset
from timeball.store.postgres.server import DATA, LOCK, PASSWORD

_BACKUP: Final = ("-R", "-X", "stream", "-c", "fast", "--no-sync")


class Standby:
    """A running standby.

    Args:
        primary: Of the database on the server that it follows.
        dsn: Of the same database here.
    """

    def __init__(self, primary: str, dsn: str) -> None:
        self.dsn = dsn
        self._primary = primary

    def catch_up(self) -> None:
        """Return once it shows all that is in the primary now."""
        ((end,),) = _asked(self._primary, "wal_end")
        until(lambda: _asked(self.dsn, "wal_reached", end=end) == [(True,)], "it catches up")

    def cut(self) -> None:
        """From here on it receives nothing."""
        _asked(self.dsn, "cut_primary")
        _asked(self.dsn, "reload")
        until(lambda: _asked(self.dsn, "wal_receivers") == [(0,)], "it receives nothing")


@contextmanager
def following(own: Path, dsn: str, database: str) -> Iterator[Standby]:
    """Lend a standby of an embedded server.

    Args:
        own: The folder of the server.
        dsn: Of a database there.
        database: Its name.
    """
    folder = Path(tempfile.mkdtemp(prefix="timeball-standby-"))
    (folder / LOCK).touch()
    shutil.copy(own / PASSWORD, folder / PASSWORD)
    binaries = find_binaries()
    words = [str(binaries.folder / "pg_basebackup"), "-D", str(folder / DATA), *_BACKUP]
    server = EmbeddedPostgres(folder, binaries=binaries, linger_s=0.0)
    try:
        subprocess.run([*words, "-d", dsn], check=True, capture_output=True)  # noqa: S603 - ours
        yield Standby(dsn, conninfo(server.start(), dbname=database))
    finally:
        server.stop()
        reset(folder)


def _asked(dsn: str, name: str, **params: Any) -> list[tuple[Any, ...]]:
    connections = Connections(dsn)
    with connections.borrowed() as connection:
        cursor = connection.execute(query(name).encode(), params or None)
        rows = cursor.fetchall() if cursor.description else []
    connections.close()
    return rows
