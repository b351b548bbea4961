"""Commands: one child process of the system, bounded in time, output and offspring.

`run` starts a minder (see `timeball.action.minder`) which starts the command, and ends its whole
tree of processes on timeout, on cancellation and when this process dies. `run` never raises for
what a command does. A command that cannot be started ends like in a shell: exit code 127 when its
program is not found, 126 when anything else stands in the way (not executable, no such working
folder or user, environment too large), and a line `timeball: …` in its output that says why.

What a job wants to tell a command goes through the environment (`extra_env`), never into its text.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from timeball.action.command_limits import RLIMITS, check_limits
from timeball.action.command_output import CHUNK, Output
from timeball.action.command_tail import Tail
from timeball.errors import UsageError

_MINDER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("minder.py")))
_NOT_STARTED = 126
_PIPE_MAX = 1 << 20  # the most that Linux lets a pipe hold, unless root says otherwise
# What the minder may take beyond the grace before it is given up: its patience with the kernel
# (10 s), with a folder that is removed (10 s), and some room for a loaded machine.
_MINDER_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, checked: a wrong one raises `UsageError` here and not when it runs.

    Args:
        argv: The program and its arguments. A name without a slash is looked up in the PATH of
            `env`. Give either this or `shell_text`.
        shell_text: Text for `shell -c`, fixed when the kind is registered, such as a crontab line.
        shell: The shell that reads `shell_text`.
        env: The whole environment of the command; nothing of the worker's own is added.
        cwd: Absolute path of the working folder; None is the worker's.
        own_cwd: `cwd` is made for the command, for nobody but its user, and removed with all that
            is in it once it has ended.
        stdin: What the command reads; then it sees the end of the file.
        user: Run as this user, groups included; needs a worker that runs as root. HOME, USER and
            LOGNAME are for `env` to say.
        no_new_privs: Whether set-user-id programs such as sudo gain nothing. None means yes,
            except where `user` is given, as a system crontab expects.
        limits: What each of its processes may take, see `timeball.action.command_limits`, such as
            ``{"memory_bytes": 1 << 30, "cpu_s": 60}``. Memory images of crashes are never written.
        timeout_s: End the command after so many seconds; None is never.
        grace_s: Seconds between SIGTERM and SIGKILL.
        output_max: Bytes kept of stdout and stderr together: half from the start, half from the
            end.

    Raises:
        UsageError: It can never run; the text says what to write instead.
    """

    argv: tuple[str, ...] = ()
    shell_text: str | None = None
    shell: str = "/bin/sh"
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin"})
    cwd: str | None = None
    own_cwd: bool = False
    stdin: bytes = b""
    user: str | None = None
    no_new_privs: bool | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    timeout_s: float | None = None
    grace_s: float = 5.0
    output_max: int = 1 << 20

    def __post_init__(self) -> None:
        self._check_program()
        _check_environment(self.env)
        if self.cwd is not None:
            _check_text("cwd", self.cwd)
            if not self.cwd.startswith("/"):
                raise UsageError(f"cwd {self.cwd!r} is relative: write the absolute path")
        elif self.own_cwd:
            raise UsageError("own_cwd: write which folder is to be made, cwd='/tmp/…'")
        if self.user is not None:
            _check_text("user", self.user)
        if not isinstance(self.stdin, bytes):
            raise UsageError("stdin must be bytes: encode the text, for instance text.encode()")
        check_limits(self.limits)
        self._check_bounds()

    def _check_program(self) -> None:
        if not isinstance(self.argv, tuple):
            raise UsageError("argv must be a tuple of strings: write argv=('ls', '-l')")
        if bool(self.argv) == (self.shell_text is not None):
            raise UsageError("give exactly one of argv=('program', 'argument') and shell_text='…'")
        for index, argument in enumerate(self.argv):
            _check_text(f"argv[{index}]", argument, may_be_empty=index > 0)
        if self.shell_text is not None:
            _check_text("shell_text", self.shell_text)
            _check_text("shell", self.shell)

    def _check_bounds(self) -> None:
        if self.timeout_s is not None and not (
            self.timeout_s > 0 and math.isfinite(self.timeout_s)
        ):
            raise UsageError(
                f"timeout_s {self.timeout_s!r}: write seconds above 0, or leave it out for no limit"
            )
        if not (self.grace_s >= 0 and math.isfinite(self.grace_s)):
            raise UsageError(f"grace_s {self.grace_s!r}: write seconds, 0 or more")
        if self.output_max < 0:
            raise UsageError(f"output_max {self.output_max!r}: write bytes, 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended.

    `exit_code` is None when a signal ended it (then `signal` is its number), when it was cancelled
    before it started, and when its minder was killed. `timed_out` and `cancelled` are true only if
    that ended it, not if it finished first. `output` is text that any database can store, at most
    `output_max` characters and what Timeball adds; `output_bytes` were written in all.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    output: str
    output_bytes: int
    duration_s: float


class Selectable(Protocol):
    """Whatever `selectors` can wait for."""

    def fileno(self) -> int:
        """The descriptor that becomes readable."""
        ...


class Cancellation:
    """A flag like `threading.Event` that `run` can wait for together with pipes.

    Any number of threads and commands may share one. Close it once nobody waits for it any more;
    to `set` it after that is harmless.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.Lock()  # close must not free the descriptor that set writes to
        self._set = self._closed = False

    def set(self) -> None:
        """Cancel, now and for good. From any thread, as often as you like."""
        with self._lock:
            if not (self._set or self._closed):
                os.write(self._writer, b"!")
            self._set = True

    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._set

    def fileno(self) -> int:
        """A descriptor that is readable from `set` on; not to be read from."""
        return self._reader

    def close(self) -> None:
        """Give the descriptors back."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._reader)
                os.close(self._writer)


def run(
    command: Command,
    *,
    cancelled: Selectable | int | None = None,
    extra_env: Mapping[str, str] | None = None,
    tail: Tail | None = None,
) -> CommandEnd:
    """Run a command to its end and say how it ended; blocks the calling thread.

    When it returns, nothing that the command started is left, whether it detached itself or not.
    If this process dies meanwhile, even by SIGKILL, the minder ends all of it. The whole takes at
    most timeout and grace, and a moment; a process that even SIGKILL does not end is named in the
    output.

    Args:
        command: What to run.
        cancelled: A `Cancellation`, or any descriptor that becomes readable, to end it early.
        extra_env: Added to `command.env` and stronger: facts about the job, such as
            TIMEBALL_JOB_ID. Values are data; no shell ever reads them as text of its own.
        tail: Told what it writes while it runs.
    """
    started_at = time.monotonic()
    attempt = _Attempt(command, tail)
    try:
        attempt.carry_out(_brief(command, extra_env or {}), cancelled)
    except (OSError, UsageError) as error:  # no room for a process or a descriptor, a wrong value
        attempt.refuse(str(error))
    return attempt.end(time.monotonic() - started_at)


class _Attempt:
    """One run of a command, as the calling thread sees it."""

    def __init__(self, command: Command, tail: Tail | None) -> None:
        self._command = command
        self._tail = tail
        self._output = Output(command.output_max)
        self._exit_code: int | None = None
        self._signal: int | None = None
        self._stopped_by: str | None = None
        self._notes: list[str] = []
        self._report = bytearray()

    def carry_out(self, brief: bytes, cancelled: Selectable | int | None) -> None:
        """Start the minder, follow it to its end, take its report."""
        with selectors.DefaultSelector() as selector:
            if cancelled is not None:
                selector.register(cancelled, selectors.EVENT_READ, "cancelled")
                if selector.select(0):
                    self._stopped_by = "cancelled"
                    return
            # Leaving this block, in whatever way, closes the control pipe, which ends the tree.
            with subprocess.Popen(  # noqa: S603 - our own script; the command is data to it
                _MINDER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            ) as minder:
                self._follow(selector, minder, brief)
            self._take_report()

    def refuse(self, reason: str) -> None:
        """Note that the command could not be started at all."""
        self._exit_code = _NOT_STARTED
        self._notes.append(f"cannot start the command: {reason}")

    def end(self, duration_s: float) -> CommandEnd:
        """How it ended."""
        text = self._output.text()
        for note in self._notes:
            text += ("\n" if text and not text.endswith("\n") else "") + f"timeball: {note}\n"
        return CommandEnd(
            exit_code=self._exit_code,
            signal=self._signal,
            timed_out=self._stopped_by == "timeout",
            cancelled=self._stopped_by == "cancelled",
            output=text,
            output_bytes=self._output.total,
            duration_s=duration_s,
        )

    def _follow(
        self, selector: selectors.BaseSelector, minder: subprocess.Popen[bytes], brief: bytes
    ) -> None:
        pipes = (minder.stdin, minder.stdout, minder.stderr)
        control, status, output = (pipe.fileno() for pipe in pipes if pipe)
        os.set_blocking(output, False)
        selector.register(status, selectors.EVENT_READ, "status")
        selector.register(output, selectors.EVENT_READ, "output")
        _write(control, brief)
        until = time.monotonic() + (self._command.timeout_s or math.inf)
        while "status" not in (over := self._listen(selector, until)):
            late = time.monotonic() >= until
            if self._stopped_by is None and (late or "cancelled" in over):
                self._stopped_by = "timeout" if late else "cancelled"
                _write(control, b"stop\n")
                until = time.monotonic() + self._command.grace_s + _MINDER_PATIENCE_S
            elif late:  # somebody stopped the minder itself
                minder.kill()
                until = math.inf
        self._drain(output)
        if self._tail is not None:
            self._tail.tell(ended=True)

    def _listen(self, selector: selectors.BaseSelector, until: float) -> set[str]:
        """Wait for news and take them in; the sources that have no more to say."""
        # At most an hour at once: the system calls below know no infinity, and not even a month.
        due_at = math.inf if self._tail is None else self._tail.due_at()
        left_s = min(3600.0, max(0.0, min(until, due_at) - time.monotonic()))
        over: set[str] = set()
        for key, _events in selector.select(left_s):
            chunk = b"" if key.data == "cancelled" else os.read(key.fd, CHUNK)
            if key.data == "output":
                self._take(chunk)
            else:
                self._report += chunk
            if not chunk:
                selector.unregister(key.fileobj)
                over.add(key.data)
        if self._tail is not None:
            self._tail.tell()
        return over

    def _take(self, chunk: bytes) -> None:
        self._output.add(chunk)
        if self._tail is not None:
            self._tail.add(chunk)

    def _drain(self, output: int) -> None:
        """Take what is left in the pipe; bounded, for the case that somebody still writes."""
        for _ in range(_PIPE_MAX // CHUNK):
            try:
                chunk = os.read(output, CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                return
            self._take(chunk)

    def _take_report(self) -> None:
        if not self._report:
            self._notes.append("the minder of this command was killed: how it ended is not known")
            return
        status, stopped, *left = map(int, self._report.split())
        if not stopped:
            self._stopped_by = None  # it ended by itself before our word arrived
        if left:
            self._notes.append(f"even SIGKILL did not end the processes {left}")
        if status >= 0:
            code = os.waitstatus_to_exitcode(status)
            self._exit_code, self._signal = (code, None) if code >= 0 else (None, -code)


def _brief(command: Command, extra_env: Mapping[str, str]) -> bytes:
    """The brief for the minder, in the format that `minder.Brief` describes."""
    _check_environment(extra_env)
    argv = command.argv or (command.shell, "-c", command.shell_text or "")
    env = {**command.env, **extra_env}
    guarded = command.user is None if command.no_new_privs is None else command.no_new_privs
    fields = (
        *(str(os.getpid()), repr(float(command.grace_s)), str(int(guarded))),
        *(command.user or "", f"{'*' * command.own_cwd}{command.cwd or ''}"),
        _limits(command.limits),
        *(str(len(argv)), str(len(env))),
        *argv,
        *(f"{name}={value}" for name, value in env.items()),
        "",
    )
    body = "\0".join(fields).encode("utf-8", "surrogateescape") + command.stdin
    return b"%d\n%b" % (len(body), body)


def _limits(limits: Mapping[str, int]) -> str:
    """Return limits as the brief has them: number of the resource and the most of it."""
    wanted = {"core_bytes": 0, **limits}
    return ",".join(f"{RLIMITS[name]}={most}" for name, most in wanted.items())


def _write(fd: int, data: bytes) -> None:
    """Write all of it; a reader that is gone shows by the end of its own pipe."""
    rest = memoryview(data)
    with contextlib.suppress(BrokenPipeError):
        while rest:
            rest = rest[os.write(fd, rest) :]


def _check_text(name: str, value: object, *, may_be_empty: bool = False) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {type(value).__name__}: write str(...)")
    if not value and not may_be_empty:
        raise UsageError(f"{name} is empty: write what it should be, or leave it out")
    if "\0" in value:
        raise UsageError(f"{name} holds a NUL, which no command can receive: take it out")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"{name} holds half a surrogate pair: write whole characters") from None


def _check_environment(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        _check_text("the name of an environment variable", name)
        if "=" in name:
            raise UsageError(f"environment variable {name!r}: a name cannot hold '='")
        _check_text(f"environment variable {name}", value, may_be_empty=True)
