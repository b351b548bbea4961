"""A PgBouncer in transaction mode, the proxy behind which there is no session."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

PORT = 6432  # of a socket in a folder of its own
PATIENCE_S = 30.0
SETTINGS = """\
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
default_pool_size = 20
max_client_conn = 500
server_reset_query_always = 0
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
pidfile =
"""


def program() -> str | None:
    """Return where it is, if it is installed."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def pgbouncer(dsn: str) -> Iterator[str]:
    """Run one in front of the server of `dsn`, and give the address of the same database there."""
    path = program()
    if path is None:
        raise pytest.UsageError("--pgbouncer: install pgbouncer")
    known = psycopg.conninfo.conninfo_to_dict(dsn)
    folder = Path(tempfile.mkdtemp(prefix="timeball-pool-"))
    settings = folder / "settings"
    settings.write_text(
        SETTINGS.format(
            host=known["host"],
            port=known.get("port", 5432),
            user=known["user"],
            own=PORT,
            folder=folder,
        )
    )
    (folder / "users").write_text(f'"{known["user"]}" "{known["password"]}"\n')
    words = [path, "-q", str(settings)]
    if os.geteuid() == 0:  # which it refuses to be
        nobody = pwd.getpwnam("nobody")
        for path in (folder, *folder.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        sockets = Path(str(known["host"]))  # which are for their owner only
        for path in (sockets, *sockets.glob(".s.PGSQL.*[0-9]")):
            path.chmod(0o777)
        words[1:1] = ["-u", nobody.pw_name]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        pooled = psycopg.conninfo.make_conninfo(dsn, host=str(folder), port=PORT)
        _await(pooled, process)
        yield pooled
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def forget_sessions(dsn: str) -> None:
    """Have it make new connections to the server, for what was SET in an old one would be met."""
    admin = psycopg.conninfo.make_conninfo(dsn, dbname="pgbouncer")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("RECONNECT")


def _await(dsn: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(dsn).close()
            return
        time.sleep(0.05)
    raise AssertionError("pgbouncer has ended, or does not answer")
