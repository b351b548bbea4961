"""Waking: a listener that has lost its session makes another one."""

from __future__ import annotations

from contextlib import closing
from threading import Event, Thread
from typing import Any, Final

from timeball.certify.probes.probe import Probe
from timeball.certify.stage import Stage
from timeball.store.postgres import listen
from timeball.store.postgres.connections import Connections


def _cut_off(stage: Stage) -> Any:
    """End the session of a listener, and see whether it listens again."""
    stop, woken = Event(), [0]

    def wake() -> None:
        woken[0] += 1

    with closing(Connections(stage.dsn)) as connections:
        ear = Thread(target=lambda: listen.listen(connections, wake, stop, ["default"]))
        ear.start()
        try:
            stage.until(lambda: woken[0] and stage.ask("listeners"), "it listens")
            for (pid,) in stage.ask("listeners"):
                stage.ask("end_session", pid=pid)
            # Whoever begins to listen is woken once: something may have come before.
            stage.until(lambda: woken[0] > 1 or not ear.is_alive(), "it listens again, or is gone")
        finally:
            stop.set()
            ear.join()
    return "listens again" if woken[0] > 1 else "is deaf"


CUT_OFF: Final = Probe(name="who is cut off listens again", run=_cut_off, expected="listens again")
