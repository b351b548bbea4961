"""X14: jobs that let nothing else of their process run, for longer than a lease."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.effects import BEGAN, ENDED
from timeball.certify.fleet import Fleet
from timeball.certify.kinds import HOGS, HOGS_LOOP, HOLD
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.observe.transitions import Happening
from timeball.worker.pulse import Stuck

_LEASE_S: Final = 1.0
_LEASES: Final = 3
_KINDS: Final = {HOGS: Stuck.INTERPRETER, HOGS_LOOP: Stuck.EVENT_LOOP}
_CALM: Final = "calm"
_CALM_LEASE_S: Final = 8.0
"""So that it would be told in the time for which the others stand still, did it stand still too."""

_TOLD: Final = re.compile(
    rf"({Happening.WORKER_STALLED}|{Happening.WORKER_GOES_ON}) .*?reason=(\w+)"
    r"(?: jobs=\[([\d, ]*)\])?"
)


class Told(NamedTuple):
    """What supervisors have written of workers that stand still."""

    begun: dict[Stuck, set[int]]
    """What stood still, and which jobs were named."""

    over: set[Stuck]


def told(texts: Iterable[str]) -> Told:
    """Return what these logs tell."""
    found = Told({}, set())
    for event, stuck, jobs in (match for text in texts for match in _TOLD.findall(text)):
        if event == Happening.WORKER_GOES_ON:
            found.over.add(Stuck(stuck))
        else:
            named = {int(job) for job in jobs.split(",") if job}
            found.begun.setdefault(Stuck(stuck), set()).update(named)
    return found


def run(stage: Stage) -> Outcome:
    """Hold the interpreter's lock, and the event loop, for three leases."""
    calm = stage.workers(slots=1, lease_s=_CALM_LEASE_S, queues=(_CALM,))
    stays = _at_rest(stage)
    args = f'{{"seconds": {_LEASES * _LEASE_S}}}'
    stage.submit([JobSpec(uuid=uuid4(), kind=kind, args=args) for kind in _KINDS])
    fleets = [stage.workers(slots=1, lease_s=_LEASE_S) for _ in range(2)]
    stage.until(lambda: told(_logs(fleets)).over >= {*Stuck}, "it is told that both go on")
    (stage.folder / _CALM).touch()
    stage.drain()
    at = {(each.what, each.job): each.at_ns for each in stage.effects.read()}
    held_s = [(at[ENDED, job] - at[BEGAN, job]) / 1e9 for job in stage.accepted - {stays}]
    histories = list(stage.store.histories())
    begun = told(_logs(fleets)).begun
    numbers = {each.kind: each.id for each in histories}
    named = [kind for kind, stuck in _KINDS.items() if numbers[kind] in begun.get(stuck, ())]
    calm_told = told(_logs([calm]))
    return Outcome(
        expected={**once(len(_KINDS) + 1), "refused": 0, "named": sorted(_KINDS), "calm": 0},
        observed={
            **seen(stage),
            "refused": sum(len(each.stale) for each in histories),
            "named": sorted(named),
            "calm": len(calm_told.begun) + len(calm_told.over),
        },
        witness={"leases that passed": int(min(held_s) / _LEASE_S), "stalls told": len(begun)},
        measured={"held_s": [round(each, 1) for each in held_s]},
    )


def _at_rest(stage: Stage) -> UUID:
    """Have the calm worker be in the middle of a job that lets the others run."""
    spec = JobSpec(uuid=uuid4(), kind=HOLD, queue=_CALM, args=f'{{"gate": "{_CALM}"}}')
    stage.submit([spec])
    stage.until(lambda: spec.uuid in stage.effects.began(), "the one that waits has begun")
    return spec.uuid


def _logs(fleets: Iterable[Fleet]) -> Iterator[str]:
    return (fleet.log.read_text("utf-8", "replace") for fleet in fleets)


X14: Final = Scenario(
    id="X14",
    title="a job that holds the interpreter's lock, and one that blocks the event loop",
    run=run,
    invariants=("I3", "I5"),
    profiles=THOROUGH,
)
