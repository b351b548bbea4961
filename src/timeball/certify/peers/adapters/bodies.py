"""What all adapters share: the terms they are given, and what the jobs of the probes do.

Runs on the interpreter of any product, so it imports the standard library only.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Protocol

FOLDER: Final = "TIMEBALL_PEERS_FOLDER"
"""The variable of the environment that names the folder of a probe."""

NUL: Final = "before \0 after"
_BRIEF_S: Final = 0.1
_LOOK_S: Final = 0.02

Ready = Callable[[], None]
"""Tells the harness that a worker is about to look for jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under what terms a product is driven."""

    dsn: str
    """A URL of its database."""

    folder: str
    slots: int
    """So many jobs may a worker run at once."""

    beat_s: int
    """How often a worker gives a sign of life, where that can be said."""

    silent_s: int
    """After so long a silence a worker counts as dead."""

    alone: bool
    """Whether no two of the jobs may run at once, over all workers."""


class NotOffered(Exception):
    """The product has no such thing; the text says what it has instead."""


class Client(Protocol):
    """What submits jobs and says what became of them."""

    async def submit(self, tags: list[str], what: str) -> list[str]:
        """Submit a job for each tag and return what they are asked for by."""

    async def states(self, refs: list[str]) -> list[str]:
        """Return "waiting", "running", "succeeded", "failed", or the product's own word."""


async def carry_out(tag: str, what: str) -> str:
    """Do what a probe's job does, and note that it began, went on to its end and left.

    Args:
        tag: Names the job; the number of its run is counted with it.
        what: "note", "brief", "hold" until its run is let go, "first-fails" once that is so,
            "raise-nul" or "return-nul".
    """
    folder = Path(os.environ[FOLDER])
    run = _numbered(folder, tag)
    _note(folder, "began", tag, run)
    try:
        if what == "brief":
            await asyncio.sleep(_BRIEF_S)
        if what in {"hold", "first-fails"}:
            await _let_go(f"{folder}/go-{tag}-{run}")
        if what == "raise-nul" or (what, run) == ("first-fails", 1):
            raise RuntimeError(NUL if what == "raise-nul" else "the first run ends late")
    finally:
        _note(folder, "left", tag, run)
    return NUL if what == "return-nul" else tag


def _numbered(folder: Path, tag: str) -> int:
    """Return which run of the job this is: 1, 2, …, whoever runs the others."""
    for run in count(1):
        try:
            (folder / f"run-{tag}-{run}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return run
    raise AssertionError


async def _let_go(gate: str) -> None:
    while not os.access(gate, os.F_OK):  # noqa: ASYNC110 - the event is a file of another process
        await asyncio.sleep(_LOOK_S)


def _note(folder: Path, what: str, tag: str, run: int) -> None:
    """Append one line; O_APPEND, so that lines of several processes do not mix."""
    file = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{what} {tag} {run} {os.getpid()} {time.monotonic_ns()}\n".encode())
    finally:
        os.close(file)
