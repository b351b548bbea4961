"""One child process and its minder, as the slot sees them that has started them."""

from __future__ import annotations

import math
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from signal import Signals
from typing import Final, Literal

from timeball.engine.process_child import SAID, Body, Frame, Waiting, receive, send
from timeball.engine.process_minder import START

StartMethod = Literal["forkserver", "spawn"]

_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Late(Exception):
    """The time is up."""


class Child:
    """The parent's ends of the pipes of one child."""

    def __init__(self, jobs: int, answers: int) -> None:
        self.told: Callable[[Body], object] = len
        """Called with what its job says before it answers."""
        self._ahead = bytearray()
        os.set_blocking(jobs, False)
        self._jobs = jobs
        self._answers = answers
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(answers, select.POLLIN)
        self._writable.register(jobs, select.POLLOUT)

    def ask(self, order: Frame, until: float | None) -> tuple[bytes, Body]:
        """Send an order and return the answer.

        Raises:
            BrokenPipeError: The child ended before it had read all of it.
            EOFError: The child ended before it had answered.
            Late: It is `until`, and there is no whole answer yet.
        """
        tag, body = order
        send(self._jobs, tag, body, partial(_await, self._writable, until))
        # Where nothing but the answer is waited for, the read itself does the waiting.
        wait: Waiting | None = None if until is None else partial(_await, self._readable, until)
        while (heard := receive(self._answers, wait, self._ahead))[0] == SAID:
            self.told(heard[1])
        return heard

    def close(self) -> None:
        """Hang up. More than once is harmless."""
        for fd in {self._jobs, self._answers} - {-1}:
            os.close(fd)
        self._jobs = self._answers = -1


def _await(poller: select.poll, until: float | None) -> None:
    while True:
        left_s = 3600.0 if until is None else min(3600.0, until - time.monotonic())
        if left_s <= 0:
            raise Late
        if poller.poll(math.ceil(1000 * left_s)):
            return


class Minder:
    """The small process between this one and the children of one slot."""

    def __init__(self, start_method: StartMethod, grace_s: float) -> None:
        self._control, theirs = socket.socketpair()
        facts = (str(theirs.fileno()), str(os.getpid()), repr(float(grace_s)), start_method)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, our own module
                [sys.executable, "-P", "-m", "timeball.engine.process_minder", *facts],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that Ctrl-C is ours to pass on
            )
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()

    def start(self, timeout_s: float) -> Child:
        """Have it start a child.

        Raises:
            OSError: It was ended, or is frozen.
        """
        self._control.settimeout(timeout_s)
        self._control.send(START)
        # It makes the pipes, so that the child's own ends never exist in this process, where a
        # copy that somebody forks would keep them open, and the child's end would go unseen.
        word, pipes, *_ = socket.recv_fds(self._control, 1, 2, _CLOSE_ON_EXEC)
        if not word:
            raise ConnectionAbortedError("the process that minds it was ended")
        for fd in pipes:
            os.set_inheritable(fd, False)
        return Child(*pipes)

    def say(self, word: bytes) -> None:
        """Tell it something; where it is gone, that shows when it is to report."""
        with suppress(OSError):
            self._control.send(word)

    def heard(self, timeout_s: float) -> bool:
        """Wait for its report."""
        return bool(select.select([self._control], [], [], max(0.0, timeout_s))[0])

    def report(self, timeout_s: float) -> list[int] | None:
        """Return how the child has ended; None where the minder does not answer any more."""
        self._control.settimeout(timeout_s)
        line = b""
        try:
            while not line.endswith(b"\n"):
                heard = self._control.recv(256)
                if not heard:
                    return None
                line += heard
        except OSError:
            return None
        return [int(number) for number in line.split()]

    def close(self) -> None:
        """Have it leave."""
        self._control.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def ending(status: int) -> str:
    """Return what a wait status says, for people."""
    if status < 0:
        return "ended, nobody knows how"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with {code}"
    return f"was ended by {Signals(-code).name if -code in set(Signals) else -code}"
