"""A primary and a standby, whose lag a test decides; and the tools that come with a server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import psycopg
from tests.store.postgres.processes import ask, eventually, sockets_of

from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown
from timeball.store.postgres.server import DATA, LOCK, PASSWORD, USER


def tool(found: Binaries, name: str, *words: str | Path) -> None:
    """Run one of PostgreSQL's own programs to its end."""
    done = subprocess.run(
        [found.folder / name, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def do(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


class Pair:
    """Two servers; `dsn` leads to whichever of them takes writes."""

    def __init__(self, folder: Path, spare: Path, found: Binaries) -> None:
        self._folder, self._spare = folder, spare
        self._primary = EmbeddedPostgres(folder, binaries=found, linger_s=0.0)
        self.primary = self._primary.start()
        spare.mkdir(mode=0o700)
        (spare / LOCK).touch()
        shutil.copy(folder / PASSWORD, spare / PASSWORD)
        words = ("-D", spare / DATA, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        tool(found, "pg_basebackup", "-d", self.primary, *words)
        self._standby = EmbeddedPostgres(spare, binaries=found, linger_s=0.0)
        self.standby = self._standby.start()
        password = quote((folder / PASSWORD).read_text(), safe="")
        places = ",".join(str(sockets_of(dsn)) for dsn in (self.primary, self.standby))
        self.dsn = (
            f"postgresql://{USER}:{password}@/postgres?host={quote(places, safe='')}"
            "&target_session_attrs=read-write"
        )

    def synchronous(self) -> None:
        """No commit is answered before the standby has it."""
        do(
            self.primary,
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        )
        of = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: ask(self.primary, of) == 1)

    def catch_up(self) -> None:
        """Return once the standby shows all that is in the primary now."""
        end = ask(self.primary, "SELECT pg_current_wal_flush_lsn()")
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
        eventually(lambda: ask(self.standby, reached) is True)

    def cut(self) -> None:
        """From here on the standby receives nothing."""
        do(
            self.standby,
            "ALTER SYSTEM SET primary_conninfo = ''",
            "SELECT pg_reload_conf()",
        )
        eventually(lambda: ask(self.standby, "SELECT count(*) FROM pg_stat_wal_receiver") == 0)

    def fail_over(self) -> None:
        """The primary is gone, and the standby takes its place."""
        shutdown(self._folder)
        assert ask(self.standby, "SELECT pg_promote(true, 60)") is True

    def close(self) -> None:
        for server, folder in ((self._standby, self._spare), (self._primary, self._folder)):
            server.stop()
            shutdown(folder)
