"""A PostgreSQL of our own: nothing to set up, shared by processes, gone when the last one is.

`EmbeddedPostgres` is one process's use of the server on a data folder. The first use starts a
minder (minder.py), which starts PostgreSQL; the end of the last use, in whatever way that
process ends, stops both. The server listens on a Unix socket in a private folder, never on TCP.

In the data folder (0700): `data` is PostgreSQL's own, `password` (0600) its superuser's,
`server.log` its bounded log, `minder.json` says where the sockets are, and two lock files.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from timeball.errors import EmbeddedUnavailable, UsageError
from timeball.store.postgres.binaries import Binaries, find_binaries
from timeball.store.postgres.links import ask, connect, is_open, links, locks
from timeball.store.postgres.server import (
    ADDRESS,
    DATA,
    LOCK,
    LOG,
    PASSWORD,
    USER,
    Failure,
    Orders,
    claim_server_lock,
    clear_sockets,
    read_address,
    tail,
    try_lock,
)

_START_S = 150.0
_STOP_S = 60.0
_LAUNCHES = 5
_POLL_S = 0.02
_LINGER_S = 0.5
_ON_LINUX = sys.platform == "linux"
_DEATH_SIGNAL = _ON_LINUX  # elsewhere a guard process does what the kernel does here
_NAMESPACE = _ON_LINUX  # where root can be root under another name
_ROOTS_FOLDER = "/var/lib/timeball"
# The minder outlives its users, so it stays small: empty packages spare it all that the real ones
# import, and need no site-packages.
_BOOT = """
import sys, types
root = sys.argv.pop(1)
for name in ("timeball", "timeball.store", "timeball.store.postgres"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [root + "/" + name.replace(".", "/")]
from timeball.store.postgres.minder import main
main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is known about the server on a data folder; never its password."""

    running: bool
    pid: int | None
    users: tuple[int, ...]
    dsn_without_password: str | None
    version: str | None
    data_folder: Path


class EmbeddedPostgres:
    """This process's use of the PostgreSQL on a data folder, from `start()` to `stop()`.

    Usable as a context manager. A child made by fork does not inherit the use: it may connect by
    the DSN while its parent lives, and calls `start()` itself to count as a user.

    Args:
        data_folder: where the server lives; `default_folder` of the binaries' version if None.
        binaries: the programs to run; those of `find_binaries()` if None.
        linger_s: seconds that a server started here waits for another user after its last one.
    """

    def __init__(
        self,
        data_folder: Path | None = None,
        *,
        binaries: Binaries | None = None,
        linger_s: float = _LINGER_S,
    ) -> None:
        self._binaries = binaries or find_binaries()
        self.data_folder = (data_folder or default_folder(self._binaries.major)).absolute()
        self._linger_s = linger_s
        self._link: socket.socket | None = None
        self._sockets: Path | None = None

    def __repr__(self) -> str:
        return f"EmbeddedPostgres({str(self.data_folder)!r}, version={self._binaries.version!r})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def dsn(self) -> str:
        """The libpq URL of the server, password included; it stays right when the server crashes.

        Raises:
            UsageError: nothing was started yet.
        """
        if self._sockets is None:
            raise UsageError("the embedded PostgreSQL was not started: call start() first")
        password = (self.data_folder / PASSWORD).read_text()
        return _url(self._sockets, f"{USER}:{quote(password, safe='')}")

    def start(self) -> str:
        """The DSN of a server that takes connections, started here unless it was running.

        Calling it again is cheap, and joins or starts another server where the old one's minder
        was killed.

        Raises:
            EmbeddedUnavailable: the server would not start; the text has the end of its log.
        """
        if not is_open(self._link):
            self.stop()
            self._join_or_launch(time.monotonic() + _START_S)
        return self.dsn

    def stop(self) -> None:
        """Ends this process's use; the server stops soon if it was the last. Never fails."""
        if self._link is not None:
            self._link.close()
            links.discard(self._link)
            self._link = None

    def _join_or_launch(self, deadline: float) -> None:
        launched = 0
        while time.monotonic() < deadline and launched <= _LAUNCHES:
            _claim_folder(self.data_folder)
            self._refuse_other_major()
            answer = self._join(deadline)
            if answer is None:
                launched += self._launch()
            elif "error" in answer:
                raise EmbeddedUnavailable(f"{self.data_folder}: {answer['error']}")
            else:
                self._sockets = Path(answer["sockets"])
                return
        if launched > _LAUNCHES:
            raise EmbeddedUnavailable(
                f"the server's minder ends without an answer: {tail(self.data_folder / LOG)}"
            )
        raise EmbeddedUnavailable(
            f"{self.data_folder} was busy for {_START_S:.0f} s: a process that holds its "
            f"{LOCK} neither serves nor ends; find it with `fuser` and end it"
        )

    def _join(self, deadline: float) -> dict[str, Any] | None:
        """The minder's answer once the server is ready, or None if there is no minder."""
        link = connect(self.data_folder, deadline - time.monotonic())
        if link is None:
            return None
        links.add(link)
        answer = ask(link, f"use {os.getpid()}")
        if answer is not None and "error" not in answer:
            link.setblocking(False)
            self._link = link
            return answer
        link.close()
        links.discard(link)
        return answer

    def _launch(self) -> bool:
        """Whether a minder was started; else waits a moment: another one is starting or ending."""
        lock = try_lock(self.data_folder / LOCK)
        if lock is None:
            time.sleep(_POLL_S)
            return False
        locks.add(lock)
        try:
            # the minder inherits the lock, so it is never free between the two processes
            started = subprocess.run(  # noqa: S603 - our own interpreter, program and JSON
                [sys.executable, "-ISc", _BOOT, Path(__file__).parents[3], self._orders(lock)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                pass_fds=[lock],
                start_new_session=True,
                check=False,
            )
        finally:
            locks.discard(lock)
            os.close(lock)
        if started.returncode != 0:
            raise EmbeddedUnavailable(f"the server's minder did not start: {started.stderr}")
        return True

    def _orders(self, lock: int) -> str:
        orders = Orders(
            folder=str(self.data_folder),
            binaries=str(self._binaries.folder),
            version=self._binaries.version,
            linger_s=self._linger_s,
            lock=lock,
            death_signal=_DEATH_SIGNAL,
            namespace=_NAMESPACE,
        )
        return json.dumps(asdict(orders))

    def _refuse_other_major(self) -> None:
        made_by = _version_on_disk(self.data_folder)
        if made_by in (None, self._binaries.major):
            return
        raise EmbeddedUnavailable(
            f"{self.data_folder} was made by PostgreSQL {made_by} and cannot be opened by "
            f"{self._binaries.version}. To move it: set TIMEBALL_POSTGRES_BIN to the folder of "
            f"PostgreSQL {made_by}'s programs, start it, dump it with pg_dumpall, and load the "
            f"dump with psql into a new data folder of PostgreSQL {self._binaries.major}"
        )


def default_folder(major: str) -> Path:
    """Where the server of that major version lives unless told otherwise.

    `$TIMEBALL_HOME`, else `timeball` in `$XDG_DATA_HOME` or `~/.local/share`. Root's own is in
    /var/lib: where there are no user namespaces its server runs as nobody, whom /root shuts out.
    """
    home, data_home = os.environ.get("TIMEBALL_HOME"), os.environ.get("XDG_DATA_HOME")
    if home:
        base = Path(home).expanduser()
    elif data_home:
        base = Path(data_home) / "timeball"
    elif os.geteuid() == 0:
        base = Path(_ROOTS_FOLDER)
    else:
        base = Path.home() / ".local" / "share" / "timeball"
    return base / f"postgres-{major}"


def hold(folder: Path, *, binaries: Binaries | None = None) -> str:
    """The DSN of a server that goes on running without a user, until `shutdown()`."""
    with EmbeddedPostgres(folder, binaries=binaries) as server:
        link = connect(server.data_folder, _START_S)
        if link is None:
            raise EmbeddedUnavailable(f"the server on {folder} ended: start it again")
        with link:
            ask(link, "hold")
        return server.dsn


def status(folder: Path) -> Status:
    """Whether a server runs on the folder, for whom, and where; starts nothing."""
    folder = folder.absolute()
    link, sockets = connect(folder, _STOP_S), read_address(folder)
    answer = None
    if link is not None:
        with link:
            answer = ask(link, "status")
    if answer is None or sockets is None:
        answer, sockets = {}, None
    return Status(
        running=bool(answer.get("pid")),
        pid=answer.get("pid"),
        users=tuple(answer.get("users", ())),
        dsn_without_password=_url(sockets, USER) if sockets else None,
        version=_version_on_disk(folder),
        data_folder=folder,
    )


def shutdown(folder: Path) -> None:
    """Stops the server for everyone and returns when it is gone; without one, does nothing.

    Raises:
        EmbeddedUnavailable: it does not end.
    """
    if (folder / LOCK).exists():
        with _stopped(folder.absolute()):
            pass


def reset(folder: Path) -> None:
    """Stops the server for everyone and removes its data folder, the data included.

    Raises:
        EmbeddedUnavailable: it does not end.
        UsageError: the folder is not one of ours.
    """
    if folder.exists():
        _refuse_foreign(folder)
        with _stopped(folder.absolute()):
            shutil.rmtree(folder)


@contextmanager
def _stopped(folder: Path) -> Iterator[None]:
    """Ends the server and its minder, and lets no other start while the block runs."""
    link = connect(folder, _STOP_S)
    if link is not None:
        with link:
            ask(link, "stop")
    deadline = time.monotonic() + _STOP_S
    while (lock := try_lock(folder / LOCK)) is None:
        if time.monotonic() > deadline:
            raise EmbeddedUnavailable(f"{folder} is still in use: see {folder / LOG}")
        time.sleep(_POLL_S)
    locks.add(lock)
    try:
        # a killed minder could not clear up after itself
        os.close(claim_server_lock(folder))
        sockets = read_address(folder)
        if sockets is not None:
            clear_sockets(sockets)
            (folder / ADDRESS).unlink()
        yield
    except Failure as failure:
        raise EmbeddedUnavailable(f"{failure}\n{tail(folder / LOG)}") from failure
    finally:
        locks.discard(lock)
        os.close(lock)


def _claim_folder(folder: Path) -> None:
    """Makes the folder if need be, closed to others; parents that exist are left as they are."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(folder)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _refuse_foreign(folder: Path) -> None:
    """Raises where the folder holds something that was not made here."""
    if not (folder / LOCK).exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds files of others: name a folder that is new or empty")


def _version_on_disk(folder: Path) -> str | None:
    """The major version that made the cluster, or None where there is no complete one."""
    try:
        return (folder / DATA / "PG_VERSION").read_text().strip()
    except OSError:
        return None


def _url(sockets: Path, user: str) -> str:
    return f"postgresql://{user}@/postgres?host={quote(str(sockets), safe='')}"
