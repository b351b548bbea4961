"""Faults that a worker process does to itself at a statement; put in by `boot`, from outside."""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import Any

from timeball.certify.boot import Boot
from timeball.store.postgres.connections import Connections


def at_statement(name: str, *, moment: str = "before", number: str = "SIGSTOP") -> Boot:
    """Return the change by which a process gets a signal at the first statement of a name.

    Args:
        name: Of a file of ``store/postgres/sql``.
        moment: "before" it is sent, or "after" its answer has come.
        number: The name of the signal: SIGSTOP to freeze, SIGKILL to die.
    """
    assert moment in {"before", "after"}, moment
    options = {"name": name, "moment": moment, "number": number}
    return Boot(call="timeball.certify.faults:signal_at", options=options)


def signal_at(name: str, moment: str, number: str) -> None:
    """Have this process get a signal the first time that it comes to a statement."""
    rows, times = Connections._rows, count()  # noqa: SLF001 - the door of all statements

    def signalled(
        self: Connections, connection: Any, asked: str, params: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        hit = asked == name and next(times) == 0
        if hit and moment == "before":
            os.kill(os.getpid(), signal.Signals[number])
        answer = rows(self, connection, asked, params)
        if hit and moment == "after":
            os.kill(os.getpid(), signal.Signals[number])
        return answer

    Connections._rows = signalled  # type: ignore[assignment, method-assign] # noqa: SLF001 - from outside
