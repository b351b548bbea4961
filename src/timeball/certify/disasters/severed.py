"""X3: the server is killed and comes back, and sessions are ended one by one."""

from __future__ import annotations

import os
import signal
from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import add, answers, once, seen
from timeball.certify.kinds import HOLD
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.sessions import Rows
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
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
    _begin(stage)
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


def run_sessions(stage: Stage) -> Outcome:
    """End every session that the workers have, the listeners' among them, in the middle of jobs."""
    _begin(stage)
    stage.reconnect()
    own = [stage.watcher.info.backend_pid]
    listening = stage.ask("listeners")
    ended = stage.ask("end_all_sessions", own=own)[0][0]
    made = listening_anew(stage, listening)
    (stage.folder / _GATE).touch()
    add(stage, _JOBS)
    stage.drain()
    return Outcome(
        expected={**once(2 * _JOBS + _HELD), "listeners made again": _WORKERS},
        observed={**seen(stage), "listeners made again": made},
        witness={"sessions ended": ended},
    )


def listening_anew(stage: Stage, before: Rows) -> int:
    """Return how many sessions listen that did not before, once there are as many as there were.

    One that was ended may be seen for a moment yet: it does not count.
    """

    def anew() -> int:
        return len({*stage.ask("listeners")}.difference(before))

    stage.until(lambda: anew() >= len(before), "they listen again")
    return anew()


def _begin(stage: Stage) -> None:
    """Have workers at work: some jobs have run, and some are in their middle."""
    stage.workers(_WORKERS, slots=2, lease_s=_LEASE_S)
    add(stage, _JOBS)
    held = [JobSpec(uuid=uuid4(), kind=HOLD, args=f'{{"gate": "{_GATE}"}}') for _ in range(_HELD)]
    stage.submit(held)
    wanted = {spec.uuid for spec in held}
    stage.until(lambda: wanted <= stage.effects.began().keys(), "those that stay have begun")
    stage.until(lambda: len(stage.ask("listeners")) == _WORKERS, "the workers listen")


X3: Final = Scenario(
    id="X3",
    title="the server is killed with jobs in their middle, and comes back",
    run=run_server,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
X6: Final = Scenario(
    id="X6",
    title="every session of the workers is ended, their listeners too",
    run=run_sessions,
    invariants=("I3", "I5", "I6"),
)
