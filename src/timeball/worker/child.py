"""A child of the supervisor: the process in which jobs run.

Started as ``python -P -m timeball.worker.child FD PARENT``. FD is one end of a socket
pair. First it brings the brief, one line of JSON: nothing secret is in the arguments or
the environment. Then the child writes a line per event, and any byte from the
supervisor means: stop now. Its end means that the supervisor has died.

SIGTERM drains. SIGINT does nothing, for Ctrl-C is the supervisor's to pass on.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Container
from dataclasses import dataclass, field
from importlib import import_module
from threading import Event, Lock, Thread, Timer
from types import TracebackType
from typing import Any, Final

import msgspec

from timeball.action.minder import PR_SET_PDEATHSIG, prctl
from timeball.action.notebook import Notebook
from timeball.action.own_kinds import serve
from timeball.action.registry import DEFAULT, Registry
from timeball.chance import draw
from timeball.errors import SchemaMismatch, StoreUnavailable, UsageError
from timeball.observe.board import Board
from timeball.observe.transitions import LogFormat, configure, telling
from timeball.store.postgres.store import PostgresStore
from timeball.worker.apart import processes
from timeball.worker.begun import BegunTable
from timeball.worker.config import WorkerConfig
from timeball.worker.exclusive import GRACE, Guard
from timeball.worker.loop import Worker
from timeball.worker.pulse import Pulse
from timeball.worker.telling import Counts, Lines, Teller

FAILURE_MAX: Final = 16_000
"""Characters of an error text that the supervisor is told: the last ones."""

EX_TEMPFAIL: Final = 75
"""Exit code: something was left to a lease."""

EX_SCHEMA: Final = 6
"""Exit code: the schema is that of another version by now."""

_LEAVE_S = 5.0
_LISTENER_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Something that defines kinds: a module, a Python file, or what a loader understands."""

    target: str
    loader: str | None = None
    """``package.module:function``, called with `target` and `options`; gives a `Registry`.
    It comes from the program itself, never from data. None: `target` is Python."""

    options: dict[str, Any] = field(default_factory=dict)
    """What JSON can hold."""

    def into(self, registry: Registry) -> None:
        """Add the kinds to `registry`.

        Raises:
            UsageError: They cannot be loaded; the text says why.
        """
        if self.loader is None:
            registry.load(self.target)
            return
        module, _, name = self.loader.partition(":")
        loaded: Registry = getattr(import_module(module), name)(self.target, **self.options)
        for kind in loaded.values():
            registry.add(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """All that a child is told."""

    dsn: str
    loads: tuple[Load, ...]
    worker: WorkerConfig
    begun_fd: int
    """The table in which it marks the turns whose attempts have begun."""

    board_fd: int | None = None
    """The board on which it counts; None: it does not."""

    log: LogFormat = LogFormat.TEXT


class Said(msgspec.Struct, omit_defaults=True, frozen=True):
    """One line that a child writes."""

    worker: int | None = None
    """It has registered, and this is its id now."""

    failed: str | None = None
    """Why it ends."""


class Link:
    """The child's end of the line to its supervisor."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lock = Lock()
        self._worker: Worker | None = None

    def read_brief(self) -> Brief | None:
        """Return what to do; None where the supervisor has died."""
        line = bytearray()
        while not line.endswith(b"\n"):
            # Looked at first, so that no byte of what follows is taken.
            ahead = self._control.recv(1 << 16, socket.MSG_PEEK)
            if not ahead:
                return None
            line += self._control.recv(ahead.find(b"\n") + 1 or len(ahead))
        return msgspec.json.decode(line, type=Brief)

    def say(self, said: Said) -> None:
        """Tell the supervisor; nothing happens where it has died."""
        try:
            with self._lock:
                self._control.sendall(msgspec.json.encode(said) + b"\n")
        except OSError:
            return  # the thread that obeys will see the end of the line

    def say_registered(self, worker: int) -> None:
        """Tell the id under which the worker has registered."""
        self.say(Said(worker=worker))

    def say_failed(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Tell what ends this process; used in place of `sys.excepthook`."""
        if isinstance(error, UsageError) and error.__cause__ is None:
            text = f"{error}\n"
        else:  # of an import that failed, the user's own lines are what helps
            lines = traceback.format_exception(error.__cause__ or error)
            text = "".join(lines) + (f"{error}\n" if error.__cause__ else "")
        self.say(Said(failed=text[-FAILURE_MAX:]))

    def govern(self, worker: Worker) -> None:
        """Have `worker` stopped from now on; before, it is the process that ends."""
        self._worker = worker

    def obey(self, signals: socket.socket, orphan_s: float) -> None:
        """Stop when told, by SIGTERM or by the supervisor. Never returns.

        Args:
            signals: Brings the numbers of the signals that this process gets.
            orphan_s: After the death of the supervisor the process ends within so long.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            selector.register(self._control, selectors.EVENT_READ)
            while self._heed({key.fileobj for key, _ in selector.select()}, signals):
                pass
        time.sleep(orphan_s)
        os._exit(EX_TEMPFAIL)

    def _heed(self, ready: Container[object], signals: socket.socket) -> bool:
        """Do as told; return False once the supervisor has died."""
        if signals in ready and signal.SIGTERM in signals.recv(64):
            self._stop(now=False)
        if self._control in ready:
            heard = self._control.recv(64)
            self._stop(now=True)
            return bool(heard)
        return True

    def _stop(self, *, now: bool) -> None:
        if self._worker is None:
            os._exit(0)  # nothing has been claimed
        self._worker.stop(now=now)


def die_with(parent: int) -> None:
    """Have this process killed when its parent dies; where it has died already, exit.

    Linux only; elsewhere the end of the line to the supervisor must do.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was told
        os._exit(EX_TEMPFAIL)


def catch_signals() -> socket.socket:
    """Return where the numbers of SIGTERM and SIGINT arrive, which now do nothing else.

    Written by the interpreter's own handler, they arrive also while the main thread is
    held up in a call to C.
    """
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    # The number of the descriptor outlives the object that would close it.
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    return reader


def work(brief: Brief, link: Link) -> None:
    """Load what is to be run and work until told to stop.

    Raises:
        StoreUnavailable: Something is left to the lease.
        SchemaMismatch: The schema is that of another version by now; what had begun has ended.
    """
    configure(brief.log)  # before anything of the user's can
    for load in brief.loads:
        load.into(DEFAULT)
    serve(DEFAULT)
    board = None if brief.board_fd is None else Board.attach(brief.board_fd)
    store, done = PostgresStore(brief.dsn), Event()
    begun = BegunTable.attach(brief.begun_fd, None if board is None else board.starts)
    worker = Worker(
        store,
        DEFAULT,
        brief.worker,
        draw=draw,
        begun=begun,
        on_registered=link.say_registered,
    )
    tellers: list[Teller] = [] if board is None else [Counts(board, DEFAULT)]
    lines = Lines() if telling() else None
    if lines is not None:
        tellers.append(lines)
    worker.tell(*tellers, herald=None if lines is None else lines.begun)
    notebook, guard = Notebook(store.note), Guard(begun, brief.worker.lease_s)
    worker.lend(transactions=store.transactions, guard=guard, **_means(brief, notebook))
    if any(kind.exclusive for kind in DEFAULT.values()):
        Thread(target=guard.run, args=(done,), daemon=True).start()
    pulse = Pulse(begun, brief.worker.lease_s, worker.ask_loop)
    Thread(target=pulse.run, args=(done,), daemon=True).start()
    link.govern(worker)
    listener = Thread(
        target=store.listen, args=(worker.wake, done, brief.worker.queues), daemon=True
    )
    listener.start()
    try:
        worker.work()
    finally:
        done.set()
        notebook.close()
        listener.join(_LISTENER_S)
        store.close()


def _means(brief: Brief, notebook: Notebook) -> dict[str, Any]:
    """Return where attempts run apart, and where it is collected what any of them says."""
    grace_s = brief.worker.grace_s
    alone_s = min(grace_s, GRACE * brief.worker.lease_s)
    return {
        "notebook": notebook,
        "apart": processes(brief.loads, brief.log, grace_s, notebook),
        "alone": processes(brief.loads, brief.log, alone_s, notebook),
    }


def main() -> None:
    """Be a child, from the first byte of the brief to the last settlement."""
    control, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    control.set_inheritable(False)
    die_with(parent)
    signals = catch_signals()
    link = Link(control)
    sys.excepthook = link.say_failed
    brief = link.read_brief()
    if brief is None:
        return
    for fd in (brief.begun_fd, brief.board_fd):
        if fd is not None:
            os.set_inheritable(fd, False)
    orphan_s = min(_LEAVE_S, brief.worker.lease_s / 3)
    Thread(target=link.obey, args=(signals, orphan_s), daemon=True).start()
    code = 0
    try:
        work(brief, link)
    except StoreUnavailable:
        code = EX_TEMPFAIL
    except SchemaMismatch as error:
        link.say(Said(failed=str(error)))
        code = EX_SCHEMA
    # Threads that user code has left behind must not keep the process.
    leave = Timer(_LEAVE_S, os._exit, (code,))
    leave.daemon = True
    leave.start()
    sys.exit(code)


if __name__ == "__main__":
    main()
