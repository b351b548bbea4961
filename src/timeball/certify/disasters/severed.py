"""X3: the server is killed, is stopped at once, and loses a session."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from timeball.certify.disasters.workload import add, hold, once, seen
from timeball.certify.queries import query
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.errors import StoreUnavailable
from timeball.store.postgres.embedded import status

_JOBS: Final = 40
_HELD: Final = 2
_WORKERS: Final = 2
_LEASE_S: Final = 15.0
"""Longer than a busy machine may stand still: nobody is to be given up here."""


def run(stage: Stage) -> Outcome:
    """Have the server go down in three ways in the middle of jobs; they end while it is away."""
    own = stage.terms.own_server
    if own is None:
        raise Skipped("only certify's own server is killed: leave --dsn out")
    stage.workers(_WORKERS, slots=2, lease_s=_LEASE_S)
    blows: dict[str, Callable[[], None]] = {
        "servers killed": lambda: os.kill(_postmaster(own), signal.SIGKILL),
        "immediate stops": lambda: os.kill(_postmaster(own), signal.SIGQUIT),
        "sessions killed": lambda: os.kill(stage.ask("listeners")[0][0], signal.SIGKILL),
    }
    same = {blow: _goes_down(stage, blow, strike, own) for blow, strike in blows.items()}
    _listening(stage)
    return Outcome(
        expected={**once(len(blows) * (2 * _JOBS + _HELD)), "began anew by itself": 1},
        observed={**seen(stage), "began anew by itself": sum(same.values())},
        witness=dict.fromkeys(blows, 1),
    )


def _goes_down(stage: Stage, blow: str, strike: Callable[[], None], own: Path) -> bool:
    """Strike the server in the middle of jobs; return whether it is the same process after it."""
    add(stage, _JOBS)
    hold(stage, _HELD, blow)
    _listening(stage)
    postmaster, since = _postmaster(own), _serving_since(stage)
    strike()
    (stage.folder / blow).touch()
    stage.until(lambda: _serving_since(stage) not in {None, since}, f"it is back: {blow}")
    stage.reconnect()
    add(stage, _JOBS)
    stage.drain()
    return _postmaster(own) == postmaster


def _listening(stage: Stage) -> None:
    stage.until(lambda: len(stage.ask("listeners")) == _WORKERS, "the workers listen")


def _postmaster(own: Path) -> int:
    """Return the process that is the server."""
    pid = status(own).pid
    assert pid is not None
    return pid


def _serving_since(stage: Stage) -> datetime | None:
    """Return since when the server has served; None where it does not."""
    try:
        with stage.store.connections.borrowed() as connection:
            rows: list[tuple[datetime]] = connection.execute(query("serving_since")).fetchall()
    except StoreUnavailable:
        return None
    return rows[0][0] if rows else None  # a session of the dead server may yet answer


X3: Final = Scenario(
    id="X3",
    title="the server is killed, stopped at once, or loses a session, with jobs in their middle",
    run=run,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
