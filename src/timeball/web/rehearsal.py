"""Runs of `timeball certify` that the dashboard starts: one at a time, beside and not inside it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from threading import Lock, Thread
from typing import Final, NamedTuple

from timeball.certify.scenario import Profile
from timeball.chance import now

LOG: Final = "log.txt"
RUN_S: Final = 900.0
"""A run that takes longer is ended."""

_END_S: Final = 15.0
_TAIL: Final = 4_096
_LINES: Final = 12
_NICE: Final = 10
_PROGRAM: Final = "from timeball.cli.main import main; main()"
_NEEDED: Final = frozenset(
    {
        *("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "HOME", "USER", "LOGNAME", "TMPDIR"),
        *("LANG", "LANGUAGE", "TZ", "TIMEBALL_HOME", "TIMEBALL_POSTGRES_BIN", "TIMEBALL_DEBUG"),
    }
)
"""Variables of the environment that a run is given: none that holds a secret or an address."""


class Playing(NamedTuple):
    """A run that was started here."""

    what: str
    """The ids of its scenarios, or "quick"."""

    began_at: datetime
    folder: Path
    child: Popen[bytes]

    @property
    def code(self) -> int | None:
        """What it ended with; None: it is still playing."""
        return self.child.poll()


class Rehearsal:
    """Starts runs, each in a process and a folder of its own, on a server of its own.

    Nothing of a run reaches the database that the dashboard shows: it is given no address, and so
    makes private databases on an embedded server.

    Args:
        folder: Where the folders of runs are made; None: nothing can be started.
        argv: What starts the command line; for tests.
    """

    def __init__(
        self, folder: Path | None, argv: Sequence[str] = (sys.executable, "-P", "-c", _PROGRAM)
    ) -> None:
        self.folder = folder
        self._argv = tuple(argv)
        self._lock = Lock()
        self._latest: Playing | None = None

    @property
    def latest(self) -> Playing | None:
        """The run that was started last."""
        return self._latest

    @property
    def is_playing(self) -> bool:
        """Whether one is under way."""
        latest = self._latest
        return latest is not None and latest.code is None

    def begin(self, scenario: str | None) -> Playing | None:
        """Start a run and return it; None: one is under way already.

        Args:
            scenario: Its id; None: all of the profile "quick".

        Raises:
            OSError: The folder cannot be written.
        """
        assert self.folder is not None
        with self._lock:
            if self.is_playing:
                return None
            began_at = now().astimezone(UTC)
            out = self.folder / f"{began_at:%Y%m%dT%H%M%S.%fZ}"
            out.mkdir(parents=True, mode=0o700)
            words = ["certify", "--profile", Profile.QUICK.value, "--out", str(out)]
            words += ["--scenario", scenario] if scenario else []
            self._latest = Playing(scenario or "quick", began_at, out, self._child(words, out))
            atexit.register(self.end)
            return self._latest

    def _child(self, words: Sequence[str], out: Path) -> Popen[bytes]:
        known = {name: value for name, value in os.environ.items() if _is_needed(name)}
        with (out / LOG).open("wb") as log:
            child = Popen(  # noqa: S603 - this interpreter, our own words
                [*self._argv, *words],
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                env=known,
                start_new_session=True,  # what ends the server by a key ends it in order, below
            )
        with suppress(OSError):  # it has ended, or may not be made to wait for others
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICE)
        Thread(target=_watch, args=(child,), name="timeball-rehearsal", daemon=True).start()
        return child

    def said(self) -> list[str]:
        """Return the last lines that the latest run has said."""
        if self._latest is None:
            return []
        try:
            with (self._latest.folder / LOG).open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - _TAIL))
                text = log.read(_TAIL).decode("utf-8", "replace")
        except OSError:
            return []
        return text.splitlines()[-_LINES:]

    def end(self) -> None:
        """End the run that is under way, and wait until it has left nothing behind."""
        with self._lock:
            latest = self._latest
            atexit.unregister(self.end)
        if latest is not None and latest.code is None:
            _end(latest.child)


def _watch(child: Popen[bytes]) -> None:
    try:
        child.wait(RUN_S)
    except TimeoutExpired:
        _end(child)


def _end(child: Popen[bytes]) -> None:
    """End a run as Ctrl-C would, and with force where that is not enough."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(_END_S)
    except TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _is_needed(name: str) -> bool:
    """Return whether a run is given a variable: what is not listed may be a secret."""
    return name in _NEEDED or name.startswith(("LC_", "PYTHON", "XDG_"))
