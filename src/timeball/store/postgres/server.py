"""PostgreSQL's processes on one data folder of ours, with the standard library only.

Two locks (flock) leave no doubt about who is alive:

* `minder.lock` is held by the minder (minder.py), the one process that starts and stops servers
  on the folder; it arrives already locked from the process that starts the minder.
* `server.lock` is inherited by every process of PostgreSQL and held by them alone: whoever can
  take it knows that no such process is left, whatever `postmaster.pid` says.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOCK, SERVER_LOCK = "minder.lock", "server.lock"
ADDRESS, PASSWORD, LOG, DATA = "minder.json", "password", "server.log", "data"
USER, PORT, CONTROL = "timeball", "5432", "minder"
_UNSYNCED = "unsynced"
_POLL_S = 0.02
_STOP_STEPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _CLONE_NEWUSER = 1, 36, 0x10000000
_READY_LINE = 7  # of postmaster.pid: where PostgreSQL writes its state
_READY = ("ready", "standby")  # the second takes connections that only read

# Durability stays as PostgreSQL ships it: fsync, full_page_writes and synchronous_commit are on.
# ALTER SYSTEM wins over these; what keeps strangers out is given on the command line instead.
_SETTINGS = """\
max_connections = 100
shared_buffers = 128MB
max_prepared_transactions = 10
max_logical_replication_workers = 0
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
log_line_prefix = '%m [%p] '
log_checkpoints = off
"""


class Failure(Exception):
    """The server cannot be had; the text is for the users who wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the starting process hands over, as JSON in the first argument."""

    folder: str
    binaries: str
    version: str
    linger_s: float
    lock: int
    death_signal: bool
    namespace: bool


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the file exclusively, or None while another process does."""
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # reset() removes the file under its lock: a lock on a removed file bars nobody
            if os.path.samestat(os.fstat(held), path.stat()):
                return held
        except BlockingIOError:
            os.close(held)
            return None
        except FileNotFoundError:
            pass
        os.close(held)


def read_address(folder: Path) -> Path | None:
    """The folder of the sockets, or None where no minder has announced one."""
    try:
        return Path(json.loads((folder / ADDRESS).read_text())["sockets"])
    except (OSError, ValueError, KeyError):
        return None


def claim_server_lock(folder: Path) -> int:
    """A hold on `server.lock`, once every process of an earlier server has been made to end."""
    for number, seconds in _STOP_STEPS:
        deadline = time.monotonic() + seconds
        held = try_lock(folder / SERVER_LOCK)
        leftover = _postmaster(folder)
        if held is None and leftover and _is_postgres(leftover):
            with suppress(ProcessLookupError):
                os.kill(leftover, number)
        while held is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            held = try_lock(folder / SERVER_LOCK)
        if held is not None:
            return held
    raise Failure(f"an earlier PostgreSQL on {folder} does not end: kill its processes")


def clear_sockets(sockets: Path) -> None:
    """Removes the private folder of the sockets, and nothing that others put there."""
    for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock", CONTROL):
        (sockets / name).unlink(missing_ok=True)
    with suppress(OSError):
        sockets.rmdir()


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of the server's log, for an error's text."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def _postmaster(folder: Path, line: int = 0) -> int | None:
    """The process id in `postmaster.pid`, if there is one."""
    try:
        return int((folder / DATA / "postmaster.pid").read_text().splitlines()[line])
    except (OSError, ValueError, IndexError):
        return None


def _is_postgres(pid: int) -> bool:
    """Whether the process may be a PostgreSQL: ids are used again. True where nobody can tell."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("postgres")
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def _forget_stranger(folder: Path) -> None:
    """Removes a `postmaster.pid` whose number now belongs to some other process.

    PostgreSQL itself clears one whose process is gone, but refuses to start over a living one.
    """
    pid = _postmaster(folder)
    with suppress(OSError):
        if pid and not Path(f"/proc/{pid}/cwd").samefile(folder / DATA):
            (folder / DATA / "postmaster.pid").unlink()


def _libc_call(name: str, *arguments: int) -> bool:
    """Whether the C library's call of that name succeeded."""
    import ctypes

    return bool(getattr(ctypes.CDLL(None), name)(*arguments) == 0)


def _enter_namespace() -> bool:
    """Whether this process now has another name for root: PostgreSQL refuses to run as root.

    Files on disk still belong to root. The inner id must have a name, for initdb looks it up.
    """
    inner = _unprivileged()
    group = os.getegid()
    if not _libc_call("unshare", _CLONE_NEWUSER):
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inner.pw_uid} 0 1")
    Path("/proc/self/gid_map").write_text(f"{inner.pw_gid} {group} 1")
    return True


def _unprivileged() -> pwd.struct_passwd:
    """The entry of nobody, or of anybody but root."""
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != 0]
    if not others:
        raise Failure("PostgreSQL refuses to run as root and this system has no other user")
    return next((entry for entry in others if entry.pw_name == "nobody"), others[0])


def _identity(orders: Orders) -> tuple[int, int] | None:
    """The user and group to run PostgreSQL as, or None to run it as this process is.

    As root: the owner of the data folder if that is another user, else root under another name,
    else nobody, who is then given the data folder.
    """
    if os.geteuid() != 0:
        return None
    owner = Path(orders.folder).stat()
    if owner.st_uid != 0:
        return owner.st_uid, owner.st_gid
    if orders.namespace and _enter_namespace():
        return None
    nobody = _unprivileged()
    for place, _, files in os.walk(orders.folder):
        for name in (".", *files):
            os.lchown(Path(place, name), nobody.pw_uid, nobody.pw_gid)
    return nobody.pw_uid, nobody.pw_gid


class Server:
    """PostgreSQL's processes on one data folder."""

    def __init__(self, orders: Orders, sockets: Path) -> None:
        self.folder = Path(orders.folder)
        self.pid: int | None = None
        self.syncing: int | None = None
        self._orders = orders
        self._sockets = sockets
        self._guard: int | None = None
        self._identity: tuple[int, int] | None = None
        if orders.death_signal:
            # what a killed PostgreSQL leaves becomes our child, to be found and ended
            _libc_call("prctl", _PR_SET_CHILD_SUBREAPER, 1)

    def prepare(self) -> int:
        """The server lock, on a folder with a complete cluster and nothing of an earlier one."""
        held = claim_server_lock(self.folder)
        _forget_stranger(self.folder)
        self._identity = _identity(self._orders)
        self._give(self._sockets)
        if not (self.folder / DATA).exists():
            self._create()
        (self.folder / DATA / "postgresql.conf").write_text(_SETTINGS)
        return held

    def launch(self, held: int) -> None:
        """Starts PostgreSQL, which takes the server lock over."""
        options = {
            "listen_addresses": "",
            "port": PORT,
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
        }
        argv = ["postgres", "-D", str(self.folder / DATA)]
        argv += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self.pid = self._spawn(argv, dying=signal.SIGINT, keep=held)
        os.close(held)
        if not self._orders.death_signal:
            self._guard = _post_guard(self.pid)

    def relaunch(self) -> None:
        """Starts PostgreSQL again after its death; it recovers from its log."""
        self.launch(claim_server_lock(self.folder))

    def is_ready(self) -> bool:
        """Whether PostgreSQL says in its own file that it takes connections."""
        try:
            lines = (self.folder / DATA / "postmaster.pid").read_text().splitlines()
            return lines[0] == str(self.pid) and lines[_READY_LINE].strip() in _READY
        except (OSError, IndexError):
            return False

    def sync(self) -> None:
        """Writes a new cluster to disk beside the running server: initdb was told not to wait."""
        if (self.folder / _UNSYNCED).exists():
            argv = ["initdb", "--sync-only", "-D", str(self.folder / DATA)]
            self.syncing = self._spawn(argv, dying=signal.SIGKILL)

    def synced(self, status: int) -> None:
        """Notes how the writing ended; where it failed, the next start does it again."""
        self.syncing = None
        if status == 0:
            (self.folder / _UNSYNCED).unlink(missing_ok=True)

    def bury(self) -> None:
        """Notes the end of the main process and ends those it left: they would bar a new one."""
        if self._guard is not None:
            os.write(self._guard, b"!")
            os.close(self._guard)
        self.pid = self._guard = None
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        for child in children.read_text().split() if children.exists() else ():
            if int(child) != self.syncing:
                os.kill(int(child), signal.SIGKILL)

    def stop(self) -> None:
        """Ends PostgreSQL: politely, then firmly, then at once."""
        if self.syncing is not None:
            os.kill(self.syncing, signal.SIGKILL)
        for number, seconds in _STOP_STEPS:
            if self.pid is None:
                return
            os.kill(self.pid, number)
            deadline = time.monotonic() + seconds
            while self.pid is not None and time.monotonic() < deadline:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    self.bury()
                else:
                    time.sleep(_POLL_S)

    def _create(self) -> None:
        """Makes a cluster beside its final place: a half-finished one never has the final name."""
        half = self.folder / f"{DATA}.new"
        shutil.rmtree(half, ignore_errors=True)
        password = self.folder / PASSWORD
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24))
        self._give(password)
        argv = ["initdb", "-D", str(half), "-U", USER, f"--pwfile={password}", "--no-sync"]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        _, status = os.waitpid(self._spawn(argv, dying=signal.SIGKILL), 0)
        if status != 0:
            raise Failure("initdb failed")
        (self.folder / _UNSYNCED).touch()
        half.rename(self.folder / DATA)

    def _give(self, path: Path) -> None:
        if self._identity is not None:
            os.chown(path, *self._identity)

    def _spawn(self, argv: list[str], *, dying: int, keep: int | None = None) -> int:
        """Starts one of PostgreSQL's programs, which gets `dying` when this process ends."""
        path = str(Path(self._orders.binaries, argv[0]))
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_"))}
        minder = os.getpid()
        child = os.fork()
        if child:
            return child
        try:
            if keep is not None:
                os.set_inheritable(keep, True)
            if self._identity is not None:
                os.setgroups([])
                os.setgid(self._identity[1])
                os.setuid(self._identity[0])
            # after the change of user, which would clear it; the minder may have died before
            if self._orders.death_signal:
                _libc_call("prctl", _PR_SET_PDEATHSIG, dying)
            if os.getppid() == minder:
                environment["LC_ALL"] = "C"
                os.execve(path, [path, *argv[1:]], environment)  # noqa: S606 - a shell is not wanted
        except OSError as error:
            os.write(2, f"{path}: {error}\n".encode())
        finally:
            os._exit(127)


def _post_guard(server: int) -> int:
    """A pipe to a process that interrupts the server when the pipe closes without a word."""
    ear, mouth = os.pipe()
    if os.fork():
        os.close(ear)
        return mouth
    try:
        os.closerange(0, ear)
        os.closerange(ear + 1, 256)
        if not os.read(ear, 1):
            os.kill(server, signal.SIGINT)
    finally:
        os._exit(0)
