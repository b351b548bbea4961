"""Programs as a user starts them, in a place of their own, and what can be seen of them outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

PATIENCE_S = 60.0
TIMEBALL = str(Path(sys.executable).with_name("timeball"))
MARK = "TIMEBALL_E2E_MARK"
INHERITED = ("PATH", "LANG", "PYTHONPATH", "TIMEBALL_POSTGRES_BIN")


def until(true: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not in {within_s:.0f} s: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for yet has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Place:
    """A folder with an environment that leads nowhere else, and the programs started in it."""

    def __init__(self, folder: Path, dsn: str = "") -> None:
        self.folder = folder
        self.work, self.home, self.data, self.tmp = (
            folder / name for name in ("work", "home", "data", "tmp")
        )
        for path in (self.work, self.home, self.tmp):
            path.mkdir()
        self.mark = f"{MARK}={uuid4().hex}"
        self.env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.env |= {"HOME": str(self.home), "TMPDIR": str(self.tmp), "TZ": "UTC"}
        self.env |= {"TIMEBALL_HOME": str(self.data), MARK: self.mark.partition("=")[2]}
        if dsn:
            self.env["TIMEBALL_DSN"] = dsn
        self._started: list[Program] = []

    def write(self, name: str, text: str) -> Path:
        path = self.work / name
        path.write_text(text)
        return path

    def start(self, *words: str) -> Program:
        """Start a `timeball` that goes on."""
        log = self.folder / f"log-{len(self._started)}"
        self._started.append(Program(self, words, log))
        return self._started[-1]

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a `timeball` to its end."""
        return self.call(TIMEBALL, *words, given=given)

    def call(self, *argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run any program to its end."""
        return subprocess.run(
            argv,
            env=self.env,
            cwd=self.work,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def said(self, *words: str) -> str:
        """Run a `timeball` that must work; return its stdout."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def processes(self) -> dict[int, str]:
        """All living processes that come from here, by their environment, folder or words."""
        return dict(self._processes())

    def _processes(self) -> Iterator[tuple[int, str]]:
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                words, env = (_text(path / name) for name in ("cmdline", "environ"))
                # A process of PostgreSQL has overwritten its environment, but not its folder.
                signs = f"{words} {env} {(path / 'cwd').readlink()}"
                if (self.mark in signs or str(self.folder) in signs) and alive(int(path.name)):
                    yield int(path.name), words

    def end(self) -> None:
        """Kill what was started; whatever of it is left after that is a failure, and killed."""
        for program in self._started:
            program.kill()
            print(program.words, program.written)  # shown where the test has failed
        try:
            until(lambda: not self.processes(), "every process of the place has ended")
        except AssertionError:
            left = self.processes()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left behind: {left}") from None


def _text(path: Path) -> str:
    return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


class Program:
    """A `timeball` that runs until it is stopped."""

    def __init__(self, place: Place, words: tuple[str, ...], log: Path) -> None:
        self.words, self._log = words, log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [TIMEBALL, *words],
                env=place.env,
                cwd=place.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def written(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str) -> None:
        """Wait until it has written that."""
        until(lambda: text in self.written or self.process.poll() is not None, text)
        assert text in self.written, self.written

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Return the exit code once it has ended."""
        return self.process.wait(PATIENCE_S)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.send(number)
        return self.wait()

    def kill(self) -> None:
        """End it and all that dies with it, also where it was stopped."""
        self.process.kill()
        self.process.wait()
