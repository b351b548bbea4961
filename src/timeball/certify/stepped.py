"""S: the in-process engine, line by line, under orders of its threads that a seed chooses."""

from __future__ import annotations

from itertools import islice
from typing import Final

from timeball.certify import trial
from timeball.certify.overlay import Overlay
from timeball.certify.scenario import Outcome, Profile, Scenario
from timeball.certify.scenarios import SCENARIOS
from timeball.certify.schedules import mixed
from timeball.certify.stage import Stage

KEPT: Final = "kept"
ORDERS: Final = {Profile.QUICK: 12, Profile.FULL: 100, Profile.SOAK: 100}
"""So many orders of each scenario are tried."""


def run(stage: Stage) -> Outcome:
    """Try some orders of each scenario; tell how to replay the first that breaks a promise."""
    copies, tried = trial.engine_copies(), ORDERS[stage.terms.profile]
    told, interrupted = {}, 0
    for each in SCENARIOS:
        told[each.name], count = _tried(each, copies, stage.terms.seed, tried)
        interrupted += count
    return Outcome(
        expected={each.name: KEPT for each in SCENARIOS},
        observed=told,
        witness={"orders in which somebody was interrupted": interrupted},
        measured={"orders of each": tried},
    )


def _tried(scenario: trial.Scenario, copies: Overlay, seed: int, count: int) -> tuple[str, int]:
    """Return what came of some orders, and in how many somebody was interrupted."""
    interrupted = 0
    orders = mixed(lambda chooser: scenario.run(copies, chooser), seed=seed)
    for outcome in islice(orders, count):
        interrupted += bool(outcome.schedule)
        if outcome.check:
            return f"{outcome.check}: {outcome.text} (replay {outcome.schedule})", interrupted
    return KEPT, interrupted


S: Final = Scenario(
    id="S",
    title="the engine in process: every line a point at which somebody else may go on",
    run=run,
    invariants=("I1", "I2", "I3", "I5", "I6", "I7", "I8", "I9", "I11", "I19", "I25"),
)
