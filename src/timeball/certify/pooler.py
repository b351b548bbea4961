"""A PgBouncer in transaction mode, the proxy behind which there is no session."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from timeball.certify.databases import conninfo
from timeball.certify.scenario import Skipped
from timeball.certify.sessions import until
from timeball.errors import StoreUnavailable
from timeball.store.postgres.connections import Connections

PORT: Final = 6432  # of a socket in a folder of its own
_PATIENCE_S: Final = 30.0
_SIZE: Final = 20
_CONSOLE: Final = "pgbouncer"
_POOLS: Final = b"SHOW POOLS"  # it is no SQL: not even a comment may stand before it
_SETTINGS: Final = """\
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr =
listen_port = {own}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
admin_users = {user}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
server_reset_query_always = 0
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
pidfile =
"""


def program() -> str | None:
    """Return where it is, if it is installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Pooler(NamedTuple):
    """A running proxy."""

    dsn: str
    """Of the database, through it."""

    pid: int

    def waiting(self) -> int:
        """Return how many wait for a session of that database."""
        connections = Connections(conninfo(self.dsn, dbname=_CONSOLE))
        with closing(connections.connect()) as console:
            cursor = console.execute(_POOLS)
            names = [column.name for column in cursor.description or ()]
            pools = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return sum(pool["cl_waiting"] for pool in pools if pool["database"] != _CONSOLE)


@contextmanager
def pooled(dsn: str, size: int = _SIZE) -> Iterator[Pooler]:
    """Run one in front of the server of `dsn`, and lend it with the address of that database.

    As root, which PgBouncer refuses to be, it runs as nobody, who is let into the folder of the
    server's sockets: the server must be one of our own.

    Args:
        dsn: Of a database on it.
        size: How many sessions there are for all who use one database.

    Raises:
        Skipped: It is not installed.
    """
    path = program()
    if path is None:
        raise Skipped("pgbouncer is not installed")
    connections = Connections(dsn)
    with connections.borrowed() as connection:
        info = connection.info
        host, port, user, password = info.host, info.port, info.user, info.password
    connections.close()
    folder = Path(tempfile.mkdtemp(prefix="timeball-pool-"))
    settings = folder / "settings"
    named = {"host": host, "port": port, "own": PORT, "folder": folder, "user": user, "size": size}
    settings.write_text(_SETTINGS.format(**named))
    (folder / "users").write_text(f'"{user}" "{password}"\n')
    process = subprocess.Popen(  # noqa: S603 - the program that was looked up
        [path, "-q", *_as_nobody(folder, Path(host)), str(settings)], stdin=subprocess.DEVNULL
    )
    try:
        found = conninfo(dsn, host=str(folder), port=str(PORT))
        until(lambda: process.poll() is not None or _answers(found), "pgbouncer", _PATIENCE_S)
        assert process.poll() is None, "pgbouncer has ended"
        yield Pooler(found, process.pid)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _as_nobody(folder: Path, sockets: Path) -> list[str]:
    """Let nobody in where this is root, and return the words that make it run as him."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    for path in (sockets, *sockets.glob(".s.PGSQL.*[0-9]")):
        path.chmod(0o777)
    return ["-u", nobody.pw_name]


def _answers(dsn: str) -> bool:
    connections = Connections(dsn)
    try:
        with connections.borrowed():
            return True
    except StoreUnavailable:
        return False
    finally:
        connections.close()
