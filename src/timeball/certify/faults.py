"""Faults that a worker process meets at a statement; put in by `boot`, from outside."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from timeball.certify.boot import Boot
from timeball.errors import StoreUnavailable
from timeball.store.postgres.connections import Connections

BEFORE = "before"
"""Before a statement is sent."""

AFTER = "after"
"""When the database has carried it out, and its answer has come."""

_Hit = Callable[[str, str], None]
"""Told the name of a statement and the moment, for each statement of this process."""


def at_statement(name: str, *, moment: str = BEFORE, number: str = "SIGSTOP") -> Boot:
    """Return the change by which a process gets a signal at the first statement of a name.

    Args:
        name: Of a file of ``store/postgres/sql``.
        moment: BEFORE or AFTER.
        number: The name of the signal: SIGSTOP to freeze, SIGKILL to die.
    """
    assert moment in {BEFORE, AFTER}, moment
    options = {"name": name, "moment": moment, "number": number}
    return Boot(call="timeball.certify.faults:signal_at", options=options)


def killed_in_turn(folder: Path, points: Sequence[tuple[str, str]]) -> Boot:
    """Return the change by which one process after the other is killed, each at a point of its own.

    A process dies at the first of these points that it comes to and that nobody has died at.

    Args:
        folder: Where it is marked who has died where: see `deaths`.
        points: Names of statements, each with a moment.
    """
    options = {"folder": str(folder), "points": [list(point) for point in points]}
    return Boot(call="timeball.certify.faults:kill_in_turn", options=options)


def unanswered(folder: Path, names: Sequence[str], times: int) -> Boot:
    """Return the change by which statements are carried out, and their answers are lost.

    Args:
        folder: Where each lost answer is noted: see `lost_answers`.
        names: Of statements.
        times: How many answers to each are lost in each process.
    """
    options = {"folder": str(folder), "names": list(names), "times": times}
    return Boot(call="timeball.certify.faults:lose_answers", options=options)


def deaths(folder: Path) -> list[tuple[str, str]]:
    """Return the points at which a process has died."""
    found = (path.name.split("-", 2) for path in folder.glob("death-*"))
    return sorted((name, moment) for _, moment, name in found)


def lost_answers(folder: Path) -> dict[str, int]:
    """Return how many answers were lost, by the names of the statements."""
    lines = [line for path in folder.glob("lost-*") for line in path.read_text().splitlines()]
    return {name: lines.count(name) for name in sorted(set(lines))}


# What runs in the process that is changed


def signal_at(name: str, moment: str, number: str) -> None:
    """Have this process get a signal the first time that it comes to a statement."""
    times = count()

    def hit(asked: str, when: str) -> None:
        if (asked, when) == (name, moment) and next(times) == 0:
            os.kill(os.getpid(), signal.Signals[number])

    _watch(hit)


def kill_in_turn(folder: str, points: list[list[str]]) -> None:
    """Have this process die at the first of some points that nobody has died at."""
    wanted = {(name, moment) for name, moment in points}

    def hit(asked: str, when: str) -> None:
        if (asked, when) not in wanted:
            return
        try:  # of several that are here at once, one dies
            Path(folder, f"death-{when}-{asked}").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    _watch(hit)


def lose_answers(folder: str, names: list[str], times: int) -> None:
    """Have the first answers to some statements lost in this process."""
    left = dict.fromkeys(names, times)
    note = os.open(Path(folder, f"lost-{os.getpid()}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def hit(asked: str, when: str) -> None:
        if when == AFTER and left.get(asked, 0):
            left[asked] -= 1
            os.write(note, f"{asked}\n".encode())
            raise StoreUnavailable("certify has lost this answer")

    _watch(hit)


def _watch(hit: _Hit) -> None:
    """Have all statements of this process pass by `hit`."""
    rows = Connections._rows  # noqa: SLF001 - the door of all statements

    def watched(
        self: Connections, connection: Any, asked: str, params: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        hit(asked, BEFORE)
        answer = rows(self, connection, asked, params)
        hit(asked, AFTER)
        return answer

    Connections._rows = watched  # type: ignore[assignment, method-assign] # noqa: SLF001 - from outside
