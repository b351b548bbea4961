"""X1: workers are killed before and after the statements that they send."""

from __future__ import annotations

from typing import Final

from timeball.certify.disasters.workload import add, totals
from timeball.certify.faults import AFTER, BEFORE, deaths, killed_in_turn
from timeball.certify.kinds import SAYS
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.stage import Stage

STATEMENTS: Final = ("register", "promote", "claim", "lease_turns", "note", "settle")
POINTS: Final = tuple((name, moment) for name in STATEMENTS for moment in (BEFORE, AFTER))
_WORKERS: Final = 3
_BATCH: Final = 20


def run(stage: Stage) -> Outcome:
    """Kill one worker at each point while jobs keep coming, then let the rest do all."""
    submitted = 0
    stage.workers(_WORKERS, slots=2, boots=[killed_in_turn(stage.folder, POINTS)])

    def all_died() -> bool:
        nonlocal submitted
        if not submitted or totals(stage)["succeeded"] == submitted:
            add(stage, _BATCH, SAYS)  # so that there is something to do at every point
            submitted += _BATCH
        return len(deaths(stage.folder)) == len(POINTS)

    stage.until(all_died, "a worker has died at every point")
    stage.drain()
    began, died = stage.effects.began(), deaths(stage.folder)
    lost = [job for job in stage.accepted if not began[job]]
    return Outcome(
        expected={"deaths": sorted(map(list, POINTS)), "lost": 0, "not succeeded": 0},
        observed={
            "deaths": sorted(map(list, died)),
            "lost": len(lost),
            "not succeeded": submitted - totals(stage)["succeeded"],
        },
        witness={"workers killed": len(died)},
        measured={"jobs": submitted, "attempts": sum(began.values())},
    )


X1: Final = Scenario(
    id="X1",
    title="kill -9 of workers before and after each statement of a job's life",
    run=run,
    invariants=("I3", "I4", "I5", "I6", "I23"),
    deadline_s=300.0,
)
