"""A child process as its supervisor sees it: started, heard, stopped, and waited for."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import msgspec

from timeball.observe.board import Board
from timeball.observe.transitions import LogFormat
from timeball.worker.begun import BegunTable
from timeball.worker.child import EX_SCHEMA, Brief, Load, Said
from timeball.worker.config import WorkerConfig
from timeball.worker.exclusive import KILL_AT, overdue
from timeball.worker.pulse import Stall, Watchdog

_NOW = b"!"
_START_S = 10.0

_log = logging.getLogger(__name__)


def _started(fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a child that inherits these descriptors, the first of which brings its brief."""
    return subprocess.Popen(  # noqa: S603 - this interpreter, our own module
        [sys.executable, "-P", "-m", "timeball.worker.child", str(fds[0]), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        pass_fds=fds,
        start_new_session=True,  # so that Ctrl-C is ours to pass on
    )


class ChildProcess:
    """One child. Only `pid`, `workers`, `slots` and `running` may be read by any thread."""

    def __init__(
        self,
        dsn: str,
        loads: Iterable[Load],
        worker: WorkerConfig,
        now: float,
        *,
        board: Board | None = None,
        log: LogFormat = LogFormat.TEXT,
    ) -> None:
        """Start it.

        The kernel kills it when the *thread* that starts it ends, so that thread must
        outlive it.

        Args:
            dsn: Of the database.
            loads: Where its kinds come from.
            worker: How it works.
            now: This process's stopwatch.
            board: Where it counts; the caller's to close.
            log: How it writes its log.
        """
        self.started_at = now
        self.workers: frozenset[int] = frozenset()
        """The ids to beat for."""

        self.ready = False
        """Whether it has ever registered."""

        self.silent = False
        """Whether it can say no more: it has ended, or will have in a moment."""

        self.failure = ""
        """What it said of why it ends."""

        self.board = board
        self.slots = worker.slots
        self._lease_s = worker.lease_s
        self._watchdog = Watchdog(worker.lease_s, now, lambda: self.frozen)
        self._reading = Lock()
        self._table: BegunTable | None = BegunTable.create(worker.slots)
        self._line, theirs = socket.socketpair()
        self._heard = b""
        fds = [theirs.fileno(), self._table.fileno()]
        if board is not None:
            fds.append(board.fileno())
        with theirs:
            self._process = _started(fds)
        self._give(
            Brief(
                dsn=dsn,
                loads=tuple(loads),
                worker=worker,
                begun_fd=fds[1],
                board_fd=None if board is None else fds[2],
                log=log,
            )
        )

    def _give(self, brief: Brief) -> None:
        self._line.settimeout(_START_S)  # a brief that no buffer holds waits for its reader
        try:
            self._line.sendall(msgspec.json.encode(brief) + b"\n")
        except OSError:
            self.kill()  # with half a brief it would wait for the rest
        self._line.setblocking(False)

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def fileno(self) -> int:
        """Return what becomes readable when the child says something, or ends."""
        return self._line.fileno()

    def hear(self) -> bool:
        """Take in what the child has said; return False once it can say no more."""
        while True:
            try:
                heard = self._line.recv(1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                heard = b""
            if not heard:
                self.silent = True
                return False
            *lines, self._heard = (self._heard + heard).split(b"\n")
            for line in lines:
                self._note(msgspec.json.decode(line, type=Said))

    @property
    def running(self) -> int:
        """Return how many attempts run in it now; for any thread."""
        with self._reading:
            return 0 if self._table is None else len(self._table.begun())

    def stalls(self, now: float) -> list[Stall]:
        """Return what in it has stood still for too long by now, and what turns again."""
        table = self._table
        return [] if table is None else self._watchdog.look(table.pulse, table.confirmed, now)

    @property
    def jobs(self) -> list[int]:
        """Return the jobs whose attempts have begun and not been settled, in that order."""
        began = {} if self._table is None else self._table.began()
        return [job_id for job_id, _ in sorted(began, key=lambda turn: began[turn])]

    def answered(self, alive: set[int], asked_ns: int) -> None:
        """Note a beat of its workers that was asked for at that instant; for any thread."""
        with self._reading:
            if self._table is not None and self.workers and self.workers <= alive:
                self._table.hear(asked_ns)

    @property
    def exclusive(self) -> int:
        """Return how many exclusive attempts run in it."""
        return 0 if self._table is None else self._table.exclusive

    def protect(self) -> None:
        """Kill it if exclusive attempts are left in it and its lease is nearly over."""
        table = self._table
        if table is None or not table.exclusive or self.ended() is not None:
            return
        if overdue(table, self._lease_s, KILL_AT, time.monotonic_ns()):
            _log.warning("child %d is cut off in an exclusive job, and killed", self.pid)
            self.kill()

    def disown(self, lost: set[int]) -> frozenset[int]:
        """Beat no more for workers that were given up; return which were this child's."""
        mine = self.workers & lost
        self.workers -= mine
        return mine

    def drain(self) -> None:
        """Have it finish what has begun, and end."""
        self._process.send_signal(signal.SIGTERM)

    def hurry(self) -> None:
        """Have it give back what has not ended, and end."""
        with suppress(OSError):
            self._line.send(_NOW)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    @property
    def frozen(self) -> bool:
        """Whether the process is stopped (SIGSTOP, a debugger). Without /proc nobody can tell."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text("ascii", "replace")
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] in "Tt"

    def ended(self) -> str | None:
        """Return how the process has ended, for people; None while it lives."""
        code = self._process.poll()
        if code is None:
            return None
        if code >= 0:
            return f"exited with {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"was ended by {name}"

    @property
    def outdated(self) -> bool:
        """Whether it has ended because the schema does not fit it any more, and has said so.

        A job may end its process with the same code: that one says nothing.
        """
        return self._process.returncode == EX_SCHEMA and bool(self.failure)

    def bury(self) -> dict[tuple[int, int], float]:
        """Clean up after a child that has ended; return the turns that it was in the middle of.

        And when these began.
        """
        self.hear()
        # What its jobs have started. The number is still the group's: it is taken from nobody
        # as long as a member lives, and if none does, it was in use a moment ago.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._line.close()
        with self._reading:
            assert self._table is not None, "it is buried once"
            begun = self._table.began()
            self._table.close()
            self._table = None
        return begun

    def _note(self, said: Said) -> None:
        if said.worker is not None:
            self.workers |= {said.worker}
            self.ready = True
        if said.failed is not None:
            self.failure = said.failed
