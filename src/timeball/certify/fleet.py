"""Real worker processes for a scenario: started, counted, frozen, killed and ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from timeball.certify.boot import Boot, command, environment
from timeball.certify.sessions import until
from timeball.worker.supervisor import SupervisorConfig

_END_S: Final = 60.0
_PS: Final = ("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "stat=")


class Fleet:
    """One supervisor with its children.

    Args:
        config: What it runs.
        log: Where it and they write what they have to say.
        boots: Changes made in each of these processes first.
        within: The command of a container of processes, which runs what follows it; `pid` is the
            container's then, and its only child the supervisor.
    """

    def __init__(
        self, config: SupervisorConfig, log: Path, boots: Sequence[Boot] = (),
        *, within: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.config = config
        self.log = log
        self._seen: set[int] = set()
        parent = "0" if within else str(os.getpid())  # in there nobody sees who is outside
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*within, *command("supervisor", parent)], stdin=subprocess.PIPE, stdout=file,
                stderr=file, env=environment(boots), start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as brief:
            brief.write(msgspec.json.encode(asdict(config)))

    @property
    def pid(self) -> int:
        """Return the id of the supervisor's process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Return whether the supervisor has ended."""
        return self._process.poll() is not None

    def children(self) -> list[int]:
        """Return the ids of the worker processes that live now."""
        found = [pid for pid, parent, state in processes() if parent == self.pid and state != "Z"]
        self._seen.update(found)
        return found

    def freeze(self, *pids: int) -> None:
        """Stop processes where they are: SIGSTOP."""
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all go on that stand still."""
        for pid in (self.pid, *self.children()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill(self, pid: int) -> None:
        """End one process at once: SIGKILL."""
        self.children()
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> int:
        """End all in order and return the exit code.

        Raises:
            Stalled: They do not end.
        """
        self.thaw()
        if not self.ended:
            self._process.send_signal(signal.SIGTERM)
        until(lambda: self.ended, "the workers end when they are told to", _END_S)
        return int(self._process.returncode)

    def discard(self) -> None:
        """End all at once, whatever state it is in."""
        children = self.children() if not self.ended else []
        for pid in (self.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def left(self) -> list[int]:
        """Return those of its processes, present and past, that are still there."""
        living = {pid for pid, _, state in processes() if state != "Z"}
        return sorted(living & {self.pid, *self._seen})


def processes() -> list[tuple[int, int, str]]:
    """Return (id, parent's id, first letter of its state) of every process of this machine."""
    if not Path("/proc/self/stat").exists():
        done = subprocess.run(_PS, capture_output=True, text=True, check=True)  # noqa: S603 - no input
        rows = [line.split() for line in done.stdout.splitlines()]
        return [(int(pid), int(parent), state[0]) for pid, parent, state, *_ in rows]
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            pid, _, rest = path.read_text("ascii", "replace").partition(" (")
            state, parent = rest.rpartition(") ")[2].split()[:2]
            found.append((int(pid), int(parent), state))
    return found
