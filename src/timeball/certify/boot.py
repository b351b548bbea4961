"""What every process that certify starts begins with: changes to the code, then the program.

Product code holds no hook. Faults and defects are put in from outside, in each process anew:
``python -P -m timeball.certify.boot supervisor`` first makes the changes that the environment
names, then is a supervisor, whose children begin in the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import msgspec

from timeball.worker import child, process
from timeball.worker.supervisor import Supervisor, SupervisorConfig

BOOTS: Final = "TIMEBALL_CERTIFY_BOOTS"
"""The variable of the environment that names the changes, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One change that is made in a process before it does anything."""

    call: str
    """``package.module:function``, of this program, never from data of others."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Its named arguments: what JSON can hold."""


def environment(boots: Sequence[Boot]) -> dict[str, str]:
    """Return this process's environment, with those changes for the one that is started."""
    told = [{"call": boot.call, "options": dict(boot.options)} for boot in boots]
    return {**os.environ, BOOTS: json.dumps([*_asked(), *told])}


def command(*words: str) -> list[str]:
    """Return the command of a process that begins here."""
    return [sys.executable, "-P", "-m", "timeball.certify.boot", *words]


def apply() -> None:
    """Make the changes that were asked of this process."""
    for asked in _asked():
        module, _, name = asked["call"].partition(":")
        getattr(import_module(module), name)(**asked["options"])


def main() -> None:
    """Be what the first word of the command says."""
    program = sys.argv.pop(1)
    apply()
    if program == "child":
        child.main()
    else:
        assert program == "supervisor", program
        sys.exit(_supervise())


def _asked() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(os.environ.get(BOOTS, "[]"))
    return found


def _supervise() -> int:
    child.die_with(int(sys.argv[1]))
    process._started = _started  # noqa: SLF001 - its children are to begin here too
    config = msgspec.json.decode(sys.stdin.buffer.read(), type=SupervisorConfig)
    return Supervisor(config).run()


def _started(fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a child as `process` does, but by way of this module."""
    return subprocess.Popen(  # noqa: S603 - this interpreter, our own module
        command("child", str(fds[0]), str(os.getpid())),
        stdin=subprocess.DEVNULL,
        pass_fds=fds,
        start_new_session=True,
    )


if __name__ == "__main__":
    main()
