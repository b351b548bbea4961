"""What the tests of processes call there, and how they look at processes from outside."""

from __future__ import annotations

import contextvars
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NoReturn

import pytest

from timeball.action.context import StopSign
from timeball.core.retry import Retry
from timeball.engine.processes import ProcessSlot
from timeball.engine.runner import Done, Ended

MARK = "TIMEBALL_TEST_PROCESSES"
RETRY = Retry()
variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
kept: list[int] = []


# Outside ------------------------------------------------------------------------------------


def run(slot: ProcessSlot, call: Callable[..., Any], *args: Any, **options: Any) -> Ended:
    facts = {"timeout_s": None, "stop": StopSign(), "retry": RETRY, **options}
    return slot.run(call, args, {}, **facts)


def value(slot: ProcessSlot, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    ended = run(slot, call, *args, **options)
    assert isinstance(ended, Done), ended
    return ended.value


def alive(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], object], within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: b") T" in Path(f"/proc/{pid}/stat").read_bytes())


def waiting_in(pipe: int) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return count


def marked(mark: str) -> list[int]:
    """Every process that has inherited the mark, but for this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return [pid for pid in found if alive(pid)]


@contextmanager
def marking() -> Iterator[str]:
    """Mark whatever is started meanwhile; in the end nothing that bears the mark is left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark := uuid.uuid4().hex)
        yield mark
    assert marked(mark) == []


# Inside -------------------------------------------------------------------------------------


def add(a: int, b: int = 1) -> int:
    return a + b


def nothing(*_args: object) -> None:
    return None


def give(made: Callable[[], Any]) -> Any:
    return made()


def raise_(error: BaseException) -> NoReturn:
    raise error


def raise_made(made: Callable[[], BaseException]) -> NoReturn:
    raise made()


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def note_and_wait(path: str) -> None:
    note(path)
    signal.pause()


def note(path: str) -> None:
    """Write the pid, all of it at once."""
    Path(f"{path}.new").write_text(str(os.getpid()))
    Path(f"{path}.new").rename(path)


def detach_and_wait(path: str) -> None:
    """Leave a process behind that neither group, session nor parent lead to; then stay."""
    detach(path)
    signal.pause()


def detach(path: str) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            note(path)
            signal.pause()
        os._exit(0)
    os.wait()


def defy(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        note_and_wait(path)


def linger() -> None:
    """Leave behind what keeps a process from leaving, and from heeding SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Thread(target=time.sleep, args=(60,)).start()


def return_when_asked(path: str) -> str:
    """Take SIGTERM for a wish, and return normally."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    note(path)
    signal.sigwait([signal.SIGTERM])
    return "in peace"


def answer_half() -> bytes:
    """Be killed in the middle of the answer."""

    def half(fd: int, parts: tuple[bytes, bytes]) -> NoReturn:
        os.write(fd, b"".join(parts)[:10_000])
        die()

    os.writev = half  # type: ignore[assignment]
    return bytes(20_000)


def fork_and_return() -> int:
    """Return how the copy ended; the copy returns as well."""
    if os.fork() == 0:
        return -1
    _pid, status = os.wait()
    return os.waitstatus_to_exitcode(status)


def descriptors_of_a_copy() -> int:
    """How many descriptors a forked copy has."""
    if os.fork() == 0:
        os._exit(len([*Path("/proc/self/fd").iterdir()]))
    _pid, status = os.wait()
    return os.waitstatus_to_exitcode(status)


def signal_and_answer(pid: int) -> str:
    os.kill(pid, signal.SIGUSR1)
    return "too late"


def what_a_program_inherits() -> set[str]:
    """The descriptors of one that is started from a job."""
    listing = subprocess.run(
        ["ls", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=False, check=True
    )
    return set(listing.stdout.decode().split())


def close_everything() -> None:
    os.closerange(3, 1000)


def babble() -> str:
    for fd in (1, 2):
        os.write(fd, b"\0\xff garbage that looks like \x01\0\0\0\0\0\0\0 a frame\n" * 3)
    sys.stdout.write("garbage")
    return "sober"


def facts() -> dict[str, Any]:
    """What kind of process this is."""
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgrp(),
        "cwd": str(Path.cwd()),
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "fds": {int(entry.name) for entry in Path("/proc/self/fd").iterdir()},
        "handlers": {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)},
        "wakeup": signal.set_wakeup_fd(-1),
    }


def set_variable() -> int:
    variable.set(variable.get() + 1)
    return variable.get()


def keep() -> list[int]:
    kept.append(1)
    return kept


def environment(name: str) -> str | None:
    return os.environ.get(name)


def fail_until(path: str) -> None:
    if not Path(path).exists():
        raise LookupError("no such database")


class DiesOnTheWay:
    """Kills the process that pickles it."""

    def __reduce__(self) -> Any:
        die()


class DiesOnArrival:
    """Kills the process that it is sent to."""

    def __reduce__(self) -> Any:
        return die, ()


class RaisesOnTheWay:
    """Cannot even be refused politely."""

    def __reduce__(self) -> Any:
        raise SystemExit

    def __repr__(self) -> str:
        raise KeyboardInterrupt


class RaisesOnArrival:
    """Can be pickled, and not be made again."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


class TwoArguments(Exception):
    """An exception that can be pickled and not be unpickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


class WithLock(Exception):
    """An exception that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = Lock()


def two_arguments() -> TwoArguments:
    return TwoArguments("one", "two")


def count() -> Any:
    yield 1


def count_and_exit(folder: str) -> NoReturn:
    note(f"{folder}/{os.getpid()}")
    os._exit(3)
