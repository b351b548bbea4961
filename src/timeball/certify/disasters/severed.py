"""X3: the server is killed and comes back."""

from __future__ import annotations

import os
import signal
from typing import Final

from timeball.certify.disasters.workload import add, answers, hold, once, seen
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.store.postgres.embedded import status

_JOBS: Final = 40
_HELD: Final = 2
_GATE: Final = "go"
_WORKERS: Final = 2
_LEASE_S: Final = 15.0
"""Longer than a busy machine may stand still: nobody is to be given up here."""


def run_server(stage: Stage) -> Outcome:
    """Kill the server in the middle of jobs; they end while it is away."""
    own = stage.terms.own_server
    if own is None:
        raise Skipped("only certify's own server is killed: leave --dsn out")
    stage.workers(_WORKERS, slots=2, lease_s=_LEASE_S)
    add(stage, _JOBS)
    hold(stage, _HELD, _GATE)
    postmaster = status(own).pid
    assert postmaster is not None
    stage.reconnect()
    os.kill(postmaster, signal.SIGKILL)
    (stage.folder / _GATE).touch()
    stage.until(lambda: status(own).pid not in {None, postmaster}, "the server comes back")
    stage.until(lambda: answers(stage), "it answers")
    add(stage, _JOBS)
    stage.drain()
    return Outcome(
        expected=once(2 * _JOBS + _HELD), observed=seen(stage), witness={"servers killed": 1}
    )


X3: Final = Scenario(
    id="X3",
    title="the server is killed with jobs in their middle, and comes back",
    run=run_server,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
