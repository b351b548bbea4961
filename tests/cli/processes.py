"""The command line in processes of its own, on an embedded server of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE_S = 60.0
PROGRAM = (sys.executable, "-c", "from timeball.cli.main import main; main()")


def until(true: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not in {within_s:.0f} s: {what}"
        time.sleep(0.02)


class Home:
    """A place for an embedded server, and commands that find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "TIMEBALL_HOME": str(folder), "TZ": "UTC"}

    def run(self, *words: str, given: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*PROGRAM, *words],
            env={**self.env, **env},
            cwd=self.folder.parent,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def said(self, *words: str) -> str:
        """Run a command that must work; return its stdout."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *words: str) -> Running:
        """Start a command that goes on."""
        return Running(self, words)

    def processes(self) -> list[str]:
        """The command lines of all processes that have this place in them."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has ended
                continue
            if str(self.folder) in words:
                found.append(words)
        return found


class Running:
    """A command that runs until it is stopped."""

    def __init__(self, home: Home, words: tuple[str, ...]) -> None:
        self._log = home.folder.parent / f"log-{'-'.join(words)[:20].replace('/', '_')}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, *words],
                env=home.env,
                cwd=home.folder.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop()

    @property
    def written(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str) -> None:
        """Wait until it has written that."""
        until(lambda: text in self.written or self._ended(), text)
        assert text in self.written, self.written

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, once more if nothing comes of it, and return the exit code."""
        self.process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(PATIENCE_S / 3)
        # Python drops a KeyboardInterrupt that strikes in a finalizer; a person presses again.
        self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def _ended(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def temporary_home(folder: Path) -> Iterator[Home]:
    """A place whose server is gone afterwards, with all that used it."""
    home = Home(folder)
    try:
        yield home
    finally:
        home.run("db", "stop")
        until(lambda: not home.processes(), "every process of the place has ended")
