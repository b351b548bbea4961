"""Faults that a worker process meets at a statement; put in by `boot`, from outside."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Final

from timeball.certify.boot import Boot
from timeball.certify.queries import query
from timeball.certify.schedules import Dice
from timeball.errors import StoreUnavailable
from timeball.store.postgres import listen
from timeball.store.postgres.connections import Connections

BEFORE = "before"
"""Before a statement is sent."""

AFTER = "after"
"""When the database has carried it out, and its answer has come."""

HELD: Final = "held-back"
"""The file in its folder by which processes are told to hold statements back."""

CODES: Final = ("40001", "40P01")
"""The SQLSTATEs of a serialization failure and of a deadlock."""

_SIDES: Final = 5  # of the dice: one in five fails

_CHECK_S: Final = 0.2
"""Of silence, after which a listener asks whether it is heard."""

_ANSWER_S: Final = 1.0
"""For which it waits."""

_Hit = Callable[[str, str, Any], None]
"""Told the name of a statement, the moment and the connection, for each of this process."""


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


def failing(folder: Path, seed: int) -> Boot:
    """Return the change by which one in five statements fails, as if it had met another one.

    Args:
        folder: Where each failure is noted: see `failures`.
        seed: Of the dice.
    """
    options = {"folder": str(folder), "seed": seed}
    return Boot(call="timeball.certify.faults:fail_some", options=options)


def held_back(folder: Path, name: str, until: str) -> Boot:
    """Return the change by which statements fail unsent while a process is told so: see `HELD`.

    Args:
        folder: Where that is told; who has come to `until` meanwhile is noted: see `came`.
        name: Of the statements.
        until: Of another statement.
    """
    options = {"folder": str(folder), "name": name, "until": until}
    return Boot(call="timeball.certify.faults:hold_back", options=options)


def listening_at(dsn: str) -> Boot:
    """Return the change by which a process listens by a way of its own, and is soon in doubt.

    Args:
        dsn: That way to the database.
    """
    return Boot(call="timeball.certify.faults:listen_at", options={"dsn": dsn})


def came(folder: Path, *, anew: bool = False) -> int:
    """Return how many processes have come to the other statement.

    Args:
        folder: Where that is noted.
        anew: Forget them, and count from here on.
    """
    paths = list(folder.glob("came-*"))
    for path in paths if anew else ():
        path.unlink()
    return 0 if anew else len(paths)


def deaths(folder: Path) -> list[tuple[str, str]]:
    """Return the points at which a process has died."""
    found = (path.name.split("-", 2) for path in folder.glob("death-*"))
    return sorted((name, moment) for _, moment, name in found)


def lost_answers(folder: Path) -> dict[str, int]:
    """Return how many answers were lost, by the names of the statements."""
    lines = [line for path in folder.glob("lost-*") for line in path.read_text().splitlines()]
    return {name: lines.count(name) for name in sorted(set(lines))}


def failures(folder: Path) -> Counter[tuple[str, str]]:
    """Return how many statements failed, by their names and the SQLSTATE."""
    lines = [line for path in folder.glob("failed-*") for line in path.read_text().splitlines()]
    return Counter((name, code) for name, code in map(str.split, lines))


class Misfortune:
    """Has statements fail: the first of each name, and one in five of those that follow.

    Args:
        folder: Where each failure is noted.
        seed: Of the dice.
    """

    def __init__(self, folder: str, seed: int) -> None:
        self._note = os.open(
            Path(folder, f"failed-{os.getpid()}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT
        )
        self._dice = Dice(seed)
        self._met: Counter[str] = Counter()
        self._lock = Lock()

    def strike(self, asked: str, connection: Any) -> None:
        """Have the server itself refuse a statement in place of carrying it out, or do nothing."""
        with self._lock:
            if self._met[asked] and self._dice.throw(_SIDES):
                return
            code = CODES[self._met[asked] % len(CODES)]
            self._met[asked] += 1
        os.write(self._note, f"{asked} {code}\n".encode())
        connection.execute(query("fail").format(code=code).encode())


# What runs in the process that is changed


def signal_at(name: str, moment: str, number: str) -> None:
    """Have this process get a signal the first time that it comes to a statement."""
    times = count()

    def hit(asked: str, when: str, _connection: Any) -> None:
        if (asked, when) == (name, moment) and next(times) == 0:
            os.kill(os.getpid(), signal.Signals[number])

    _watch(hit)


def kill_in_turn(folder: str, points: list[list[str]]) -> None:
    """Have this process die at the first of some points that nobody has died at."""
    wanted = {(name, moment) for name, moment in points}

    def hit(asked: str, when: str, _connection: Any) -> None:
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

    def hit(asked: str, when: str, _connection: Any) -> None:
        if when == AFTER and left.get(asked, 0):
            left[asked] -= 1
            os.write(note, f"{asked}\n".encode())
            raise StoreUnavailable("certify has lost this answer")

    _watch(hit)


def fail_some(folder: str, seed: int) -> None:
    """Have one in five statements of this process fail."""
    misfortune = Misfortune(folder, seed)

    def hit(asked: str, when: str, connection: Any) -> None:
        if when == BEFORE:
            misfortune.strike(asked, connection)

    _watch(hit)


def hold_back(folder: str, name: str, until: str) -> None:
    """Have statements of a name fail unsent while a file is there."""
    held = Path(folder, HELD)

    def hit(asked: str, when: str, _connection: Any) -> None:
        if (asked, when) == (name, BEFORE) and held.exists():
            raise StoreUnavailable("certify has held this back")
        if (asked, when) == (until, AFTER) and held.exists():
            Path(folder, f"came-{os.getpid()}").touch()

    _watch(hit)


def listen_at(dsn: str) -> None:
    """Have this process listen there, and ask sooner than else whether it is heard."""
    os.environ[listen.DIRECT] = dsn
    vars(listen).update(TICK_S=_CHECK_S, CHECK_S=_CHECK_S, ANSWER_S=_ANSWER_S)


def _watch(hit: _Hit) -> None:
    """Have all statements of this process pass by `hit`."""
    rows = Connections._rows  # noqa: SLF001 - the door of all statements

    def watched(
        self: Connections, connection: Any, asked: str, params: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        hit(asked, BEFORE, connection)
        answer = rows(self, connection, asked, params)
        hit(asked, AFTER, connection)
        return answer

    Connections._rows = watched  # type: ignore[assignment, method-assign] # noqa: SLF001 - from outside
