"""Processes: who gives signs of life, who hears a signal, and who is ended with a command."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final
from uuid import uuid4

from timeball.action import command
from timeball.certify.fleet import processes
from timeball.certify.kinds import HOGS, NOTE
from timeball.certify.probes.probe import Probe
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec

_LEASE_S: Final = 1.0
_HELD_S: Final = 3.0
_TIMEOUT_S: Final = 2.0

# Forks into a session of its own, so that no group leads to it; notes its number, and stays.
_DETACHES: Final = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(60)
"""


def _hogged(stage: Stage) -> Any:
    """Hold the interpreter's lock for three leases while another worker stands by."""
    args = f'{{"seconds": {_HELD_S}}}'
    stage.submit([JobSpec(uuid=uuid4(), kind=HOGS, args=args)])
    for _ in range(2):
        stage.workers(slots=1, lease_s=_LEASE_S)
    stage.drain()
    (history,) = stage.store.histories()
    return len(history.grants)


def _told_to_end(stage: Stage) -> Any:
    """Tell a supervisor to end, as a container's first process is told; return its exit code."""
    fleet = stage.workers()
    stage.submit([JobSpec(uuid=uuid4(), kind=NOTE)])
    stage.drain()
    return fleet.stop()


def _timed_out(stage: Stage) -> Any:
    """Have a command take too long; return whether what it has left to itself is gone."""
    note = stage.folder / "pid"
    argv = (sys.executable, "-I", "-S", "-c", _DETACHES, str(note))
    end = command.run(command.Command(argv=argv, timeout_s=_TIMEOUT_S, grace_s=0.1))
    pid = int(note.read_text())
    living = {each for each, _, state in processes() if state != "Z"}
    if pid in living:
        os.kill(pid, signal.SIGKILL)
    return {"timed out": end.timed_out, "left": pid in living}


HOGGED: Final = Probe(
    name="a job that lets nothing else of its process run is not given up",
    run=_hogged,
    expected=1,
)
TOLD_TO_END: Final = Probe(name="SIGTERM ends in order", run=_told_to_end, expected=0)
TIMED_OUT: Final = Probe(
    name="a command is ended with all that came of it",
    run=_timed_out,
    expected={"timed out": True, "left": False},
)
