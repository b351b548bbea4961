"""The process that minds one embedded PostgreSQL, with the standard library only.

`postgres` is its direct child, and every process that uses the server keeps one connection to
the minder's control socket. The kernel closes that connection however the user dies, so the
count of connections is the count of users: when it has been zero for a while, the server is
stopped and the minder ends.

If PostgreSQL is killed, the minder starts it again on the same socket: it recovers from its log
and the users' DSN stays right. If the minder is killed, PostgreSQL gets SIGINT from the kernel
(or from a guard process where the kernel cannot do that) and shuts down; the next `start()`
finds the lock free and starts another minder, on the same socket again.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from timeball.store.postgres.server import (
    ADDRESS,
    CONTROL,
    LOG,
    Failure,
    Orders,
    Server,
    clear_sockets,
    read_address,
    tail,
)

_POLL_S = 0.02
_TRIM_S = 10.0
_LOG_BYTES = 4 << 20
_READY_S = 120.0
_RELAUNCHES = 5
_RELAUNCH_S = 0.1
_STEADY_S = 60.0
_FIRST_USER_S = 5.0
_SHORT_PATH = 60  # bytes; a socket's whole path may have about 100


class Minder:
    """The loop: hears users come and go, starts PostgreSQL again when it dies, ends with them."""

    def __init__(self, orders: Orders, listener: socket.socket, sockets: Path) -> None:
        self._orders = orders
        self._linger_s = max(orders.linger_s, _FIRST_USER_S)  # the one who starts it may be slow
        self._sockets = sockets
        self._server = Server(orders, sockets)
        self._users: dict[socket.socket, int] = {}
        self._waiting: set[socket.socket] = set()
        self._listener = listener
        self._ears = selectors.DefaultSelector()
        self._serving, self._ready, self._held = True, False, False
        self._crashes = 0
        self._changed_at = time.monotonic()
        self._launch_at = 0.0

    def run(self) -> None:
        """Minds the server until nobody needs it any more or it cannot be had."""
        folder = self._server.folder
        self._listen()
        try:
            self._server.launch(self._server.prepare())
            while self._serving:
                for key, _ in self._ears.select(self._patience_s()):
                    key.data()
                self._reap()
                self._advance(time.monotonic())
        except (Failure, OSError) as failure:
            text = f"{failure}\n{tail(folder / LOG)}"
            self._answer_those_who_came()
            for user in tuple(self._users):
                self._tell(user, error=text)
        finally:
            (folder / ADDRESS).unlink(missing_ok=True)
            self._listener.close()
            self._server.stop()
            clear_sockets(self._sockets)

    def _listen(self) -> None:
        """Watches the control socket, the end of children and the request to stop."""
        ear, mouth = socket.socketpair()
        ear.setblocking(False)
        mouth.setblocking(False)
        self._listener.setblocking(False)
        self._ears.register(self._listener, selectors.EVENT_READ, self._greet)
        self._ears.register(ear, selectors.EVENT_READ, partial(ear.recv, 256))
        signal.set_wakeup_fd(mouth.detach(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "_serving", False))

    def _patience_s(self) -> float:
        """How long to wait for news before the clock itself is news."""
        if not self._ready:
            return _POLL_S
        if self._users or self._held:
            return _TRIM_S
        return max(0.0, self._changed_at + self._linger_s - time.monotonic())

    def _advance(self, now: float) -> None:
        """Does what time alone brings about."""
        _trim(self._server.folder / LOG)
        if self._server.pid is None:
            if now >= self._launch_at:
                self._server.relaunch()
                self._changed_at = now
        elif not self._ready:
            self._await_ready(now)
        elif not (self._users or self._held) and now >= self._changed_at + self._linger_s:
            self._serving = False

    def _await_ready(self, now: float) -> None:
        if self._server.is_ready():
            self._ready = True
            self._changed_at = now
            while self._waiting:
                self._welcome(self._waiting.pop())
            self._server.sync()
        elif now > self._changed_at + _READY_S:
            raise Failure(f"PostgreSQL did not get ready in {_READY_S:.0f} s")

    def _reap(self) -> None:
        """Takes note of every child that ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._server.pid:
                    self._mourn()
                elif ended[0] == self._server.syncing:
                    self._server.synced(ended[1])

    def _mourn(self) -> None:
        """PostgreSQL ended unbidden: start it again, ever later, unless it never ran at all."""
        now = time.monotonic()
        self._server.bury()
        if self._ready and now > self._changed_at + _STEADY_S:
            self._crashes = 0
        if not (self._ready or self._crashes):
            raise Failure("PostgreSQL did not start")
        if self._crashes == _RELAUNCHES:
            raise Failure(f"PostgreSQL ended {_RELAUNCHES + 1} times in short order")
        self._launch_at = now + _RELAUNCH_S * self._crashes**2
        self._crashes += 1
        self._ready = False

    def _greet(self) -> None:
        with suppress(BlockingIOError):
            caller, _ = self._listener.accept()
            caller.setblocking(False)
            self._ears.register(caller, selectors.EVENT_READ, partial(self._hear, caller))

    def _hear(self, caller: socket.socket) -> None:
        """Obeys one line of a caller, or notes that it is gone."""
        try:
            line = caller.recv(256).decode(errors="replace")
        except OSError:
            line = ""
        match line.split():
            case ["use", pid] if pid.isdecimal():
                self._users[caller] = int(pid)
                self._linger_s = self._orders.linger_s
                if self._ready:
                    self._welcome(caller)
                else:
                    self._waiting.add(caller)
            case ["status"]:
                self._tell(caller, pid=self._server.pid, users=sorted({*self._users.values()}))
            case ["hold"]:
                self._held = True
                self._tell(caller, held=True)
            case ["stop"]:
                self._serving = False
            case _:
                self._part(caller)

    def _answer_those_who_came(self) -> None:
        """Hears callers who came meanwhile, and waits for the one who started this process."""
        while events := self._ears.select(0 if self._users else 1):
            for key, _ in events:
                key.data()

    def _welcome(self, user: socket.socket) -> None:
        self._tell(user, sockets=str(self._sockets), version=self._orders.version)

    def _tell(self, caller: socket.socket, **news: object) -> None:
        try:
            caller.sendall(json.dumps(news).encode() + b"\n")
        except OSError:
            self._part(caller)

    def _part(self, caller: socket.socket) -> None:
        if self._users.pop(caller, None) is not None and self._ready:
            self._changed_at = time.monotonic()
        self._waiting.discard(caller)
        self._ears.unregister(caller)
        caller.close()


def _trim(log: Path) -> None:
    """Keeps the log bounded: one full file of the past, one of the present."""
    with suppress(OSError):
        if log.stat().st_size > _LOG_BYTES:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            # cut in place: PostgreSQL has it open for appending and goes on at its end
            os.truncate(log, 0)


def _socket_folder(folder: Path) -> Path:
    """A private folder with a short path: an earlier minder's, so that its DSN stays right."""
    earlier = read_address(folder)
    if earlier is not None:
        with suppress(OSError):
            found = earlier.lstat()
            if found.st_mode == stat.S_IFDIR | stat.S_IRWXU and found.st_uid in (
                os.geteuid(),
                folder.stat().st_uid,
            ):
                return earlier
    place = tempfile.gettempdir()
    if len(place) > _SHORT_PATH:
        place = "/tmp"  # noqa: S108 - mkdtemp makes a folder there that only we can enter
    return Path(tempfile.mkdtemp(prefix="timeball-", dir=place))


def main() -> None:
    """Becomes the minder; the process that started it is let go once callers can connect."""
    orders = Orders(**json.loads(sys.argv[1]))
    folder = Path(orders.folder)
    os.set_inheritable(orders.lock, False)
    os.umask(0o077)
    os.chdir("/")
    sockets = _socket_folder(folder)
    (sockets / CONTROL).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(sockets / CONTROL))
    listener.listen(128)
    fresh = folder / f"{ADDRESS}.new"
    fresh.write_text(json.dumps({"sockets": str(sockets)}))
    fresh.rename(folder / ADDRESS)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.fork():
        os._exit(0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    Minder(orders, listener, sockets).run()
