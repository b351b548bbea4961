"""X6: listeners that nothing comes through to, while their sessions go on; then all are ended."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import add, hold, once, seen
from timeball.certify.faults import listening_at
from timeball.certify.kinds import NOTE
from timeball.certify.link import Link, Way, linked
from timeball.certify.scenario import Check, Outcome, Scenario
from timeball.certify.sessions import Rows
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.core.states import State

_JOBS: Final = 40
_HELD: Final = 2
_SLOTS: Final = 4
"""More than are held, who may all be with one worker: what that claims must begin all the same."""
_LOOKS: Final = 20
"""So often it may be looked whether a busy machine picks up in time; as many jobs there are."""
_GATE: Final = "go"
_WORKERS: Final = 2
_LEASE_S: Final = 15.0
"""Longer than a busy machine may stand still: nobody is to be given up here."""
_FIRST: Final = 2
"""Looks that do not count: a worker may have been woken just before."""
_POLL_S: Final = 0.5
_SWALLOWED: Final = "listeners made again that nothing came through to"
_ENDED: Final = "listeners made again"


def run(stage: Stage) -> Outcome:
    """In the middle of jobs swallow what listeners are sent, and then end all sessions."""
    link = stage.lend(linked(stage.dsn)) if stage.terms.own_server else None
    boots = [listening_at(link.dsn)] if link else []
    stage.workers(_WORKERS, slots=_SLOTS, lease_s=_LEASE_S, poll_s=_POLL_S, boots=boots)
    add(stage, _JOBS)
    hold(stage, _HELD, _GATE)
    half = _swallowed(stage, link)
    stage.reconnect()
    own = [stage.watcher.info.backend_pid]
    listening = _listening(stage)
    ended = stage.ask("end_all_sessions", own=own)[0][0]
    made = listening_anew(stage, listening)
    (stage.folder / _GATE).touch()
    add(stage, _JOBS)
    stage.drain()
    jobs = 2 * _JOBS + _HELD + (_LOOKS if link else 0)
    return replace(
        half,
        expected={**half.expected, **once(jobs), _ENDED: _WORKERS},
        observed={**half.observed, **seen(stage), _ENDED: made},
        witness={**half.witness, "sessions ended": ended},
    )


def _swallowed(stage: Stage, link: Link | None) -> Outcome:
    """Tell of the half in which sessions go on to exist, where it can be played."""
    if link is None:
        why = "a proxy is put before certify's own server only: leave --dsn out"
        return Outcome(expected={}, observed={}, left_out={_SWALLOWED: why})
    listening = _listening(stage)
    link.turn(Way.SWALLOW)
    waits_s: list[float] = []
    while len(waits_s) < _LOOKS and not _in_time(waits_s):
        waits_s.append(_picked_up_s(stage))
    add(stage, _LOOKS - len(waits_s))
    stage.until(lambda: link.swallowed, "listeners are sent something")
    link.turn(Way.PASS)  # until here nobody could listen again
    made = listening_anew(stage, listening)
    in_time = Check("picked up by polling", _in_time(waits_s), f"after {waits_s} s")
    return Outcome(
        expected={_SWALLOWED: _WORKERS},
        observed={_SWALLOWED: made},
        witness={"bytes swallowed": link.swallowed},
        checks=(in_time,),
        measured={"picked_up_s": waits_s, "poll_s": _POLL_S},
    )


def _in_time(waits_s: list[float]) -> bool:
    return any(wait_s <= _POLL_S for wait_s in waits_s[_FIRST:])


def _picked_up_s(stage: Stage) -> float:
    """Submit a job; return for how many seconds it waited, once it has ended."""
    spec = JobSpec(uuid=uuid4(), kind=NOTE)
    since_ns = time.monotonic_ns()
    stage.submit([spec])
    stage.until(
        lambda: stage.store.get(spec.uuid).state is State.SUCCEEDED,
        "it is picked up, although nobody is woken",
    )
    began_ns = min(each.at_ns for each in stage.effects.read() if each.job == spec.uuid)
    return round((began_ns - since_ns) / 1e9, 2)


def _listening(stage: Stage) -> Rows:
    """Return the sessions that listen, once they are those of the workers and no others."""
    found: list[Rows] = []

    def all_of_them() -> bool:
        found.append(stage.ask("listeners"))
        return len(found[-1]) == _WORKERS

    stage.until(all_of_them, "the workers listen")
    return found[-1]


def listening_anew(stage: Stage, before: Rows) -> int:
    """Return how many sessions listen that did not before, once there are as many as there were.

    One that was ended may be seen for a moment yet: it does not count.
    """

    def anew() -> int:
        return len({*stage.ask("listeners")}.difference(before))

    stage.until(lambda: anew() >= len(before), "they listen again")
    return anew()


X6: Final = Scenario(
    id="X6",
    title="listeners that nothing comes through to; then every session is ended",
    run=run,
    invariants=("I3", "I5", "I6"),
)
