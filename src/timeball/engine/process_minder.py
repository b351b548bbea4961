"""Minds the children of one `ProcessSlot`, one at a time: starts them, ends all that came of them.

Started as ``python -P -m timeball.engine.process_minder FD PARENT GRACE_S METHOD``, in a session
of its own. FD is a socket. Each START makes a child, and two pipes that it serves, whose other
ends are the answer. When the child has ended, by itself or because of STOP or KILL, nothing that
descends from it is left, and a line says how: the wait status, then the processes that even
SIGKILL did not end. The end of the socket, or of the parent, is a STOP too, and then the minder
leaves.

The child is a process of this process because only that can do what is needed once the parent is
dead: as a child subreaper (Linux) the minder keeps those who detached themselves. It also makes
a cheap fork server, for it has no threads and has imported nothing of the user's.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final

from timeball.action.minder import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    TICK_S,
    Tree,
    absorb,
    await_end,
    descendants,
    finish,
    open_nudges,
    open_worker,
    prctl,
)
from timeball.engine.process_child import serve

START, STOP, KILL = b"s", b"t", b"k"

_ORPHAN: Final = 75
_IGNORED: Final = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)

Pipes = tuple[int, int]


class Minder:
    """Single-threaded; `mind` is all it does."""

    def __init__(self, control: socket.socket, parent: int, grace_s: float) -> None:
        self._control = control
        self._grace_s = grace_s
        self._nudges, self._nudger = open_nudges()
        self._parent = open_worker(parent)
        self._adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)

    def mind(self) -> Pipes | None:
        """Start and end children as told. Returns in a child, with its pipes; else at the end."""
        calls = [self._control.fileno(), *self._parent]
        poller = select.poll()
        for fd in calls:
            poller.register(fd, select.POLLIN)
        own = os.getpid()
        while not {fd for fd, _event in poller.poll()} & {*self._parent}:
            word = self._control.recv(1)
            if not word:
                break
            if word != START:
                continue  # was meant for a child that has ended meanwhile
            jobs, to_jobs = os.pipe()
            from_answers, answers = os.pipe()
            pid = os.fork()
            if pid == 0:
                self._become_child(own, to_jobs, from_answers)
                return jobs, answers
            os.close(jobs)
            os.close(answers)
            self._tell(b"c", to_jobs, from_answers)
            tree = Tree(pid, adopts=self._adopts)
            await_end(tree, self._nudges, calls)
            self._end(tree)
            self._report(tree)
        return None

    def _tell(self, text: bytes, *fds: int) -> None:
        with suppress(OSError):  # the parent died: nobody is left to tell
            socket.send_fds(self._control, [text], fds)
        for fd in fds:
            os.close(fd)

    def _end(self, tree: Tree) -> None:
        """Ask everybody who is left to end, and after the grace, or at KILL, make them."""
        poller = select.poll()
        poller.register(self._nudges, select.POLLIN)
        poller.register(self._control, select.POLLIN)
        asked_until = 0.0
        while not tree.gone:
            ready = {fd for fd, _event in poller.poll(1000 * TICK_S if asked_until else 0)}
            word = STOP
            if self._control.fileno() in ready:
                word = self._control.recv(1)
                if not word:
                    poller.unregister(self._control)
            absorb(self._nudges)
            tree.reap()
            now = time.monotonic()
            if word == KILL or (asked_until and now >= asked_until):
                break
            if not asked_until:
                tree.signal(signal.SIGTERM)
                tree.signal(signal.SIGCONT)  # a stopped process heeds no SIGTERM
                asked_until = now + self._grace_s
        finish(tree, self._nudges, 0.0)

    def _report(self, tree: Tree) -> None:
        numbers = [-1 if tree.status is None else tree.status]
        if not tree.gone:
            numbers += descendants(os.getpid())[:20]
        self._tell(" ".join(map(str, numbers)).encode() + b"\n")

    def _become_child(self, minder: int, *others: int) -> None:
        """Keep nothing of the minder, and be what a fresh interpreter would be."""
        signal.set_wakeup_fd(-1)  # from 3.12 on a fork does it too
        for fd in (self._nudges, self._nudger, *self._parent, *others):
            os.close(fd)
        self._control.close()
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != minder:  # it died before the kernel was told
            os._exit(_ORPHAN)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN if number in _IGNORED else signal.SIG_DFL)
        # Last: a SIGTERM that came since the fork is waiting, and now ends this process.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main() -> None:
    """Be a minder, and in the forked copies a child."""
    # Whatever is sent to this process, it must outlive its child.
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGCHLD})
    control, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    control.set_inheritable(False)
    pipes = None
    if os.getppid() == parent:  # else it died before it could be watched
        pipes = Minder(control, parent, float(sys.argv[3])).mind()
    if pipes is None:
        os._exit(0)
    if sys.argv[4] == "spawn":
        for fd in pipes:
            os.set_inheritable(fd, True)
        child = [sys.executable, "-P", "-m", "timeball.engine.process_child", *map(str, pipes)]
        os.execv(sys.executable, child)  # noqa: S606 - this interpreter, our own module
    serve(*pipes)


if __name__ == "__main__":
    main()
