"""X14: jobs that let nothing else of their process run, for longer than a lease."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.effects import BEGAN, ENDED
from timeball.certify.kinds import HOGS, HOGS_LOOP
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec

_LEASE_S: Final = 1.0
_LEASES: Final = 3
_KINDS: Final = (HOGS, HOGS_LOOP)


def run(stage: Stage) -> Outcome:
    """Hold the interpreter's lock, and the event loop, for three leases."""
    args = f'{{"seconds": {_LEASES * _LEASE_S}}}'
    stage.submit([JobSpec(uuid=uuid4(), kind=kind, args=args) for kind in _KINDS])
    stage.workers(slots=1, lease_s=_LEASE_S)
    stage.workers(slots=1, lease_s=_LEASE_S)
    stage.drain()
    at = {(each.what, each.job): each.at_ns for each in stage.effects.read()}
    held_s = [(at[ENDED, job] - at[BEGAN, job]) / 1e9 for job in stage.accepted]
    given_up = sum(len(each.stale) for each in stage.store.histories())
    return Outcome(
        expected={**once(len(_KINDS)), "refused": 0},
        observed={**seen(stage), "refused": given_up},
        witness={"leases that passed": int(min(held_s) / _LEASE_S)},
        measured={"held_s": [round(each, 1) for each in held_s]},
    )


X14: Final = Scenario(
    id="X14",
    title="a job that holds the interpreter's lock, and one that blocks the event loop",
    run=run,
    invariants=("I3", "I5"),
    profiles=THOROUGH,
)
