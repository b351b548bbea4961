"""SIM: seeded simulations, one after the other, as a scenario of certify."""

from __future__ import annotations

import time
from typing import Final

from timeball.certify.scenario import Outcome, Profile, Scenario
from timeball.certify.simulation.run import PROBES, simulations
from timeball.certify.stage import Stage

STEPS: Final = {Profile.QUICK: 100_000, Profile.FULL: 500_000, Profile.SOAK: 500_000}
_SEEDS_APART: Final = 10_000
"""Between the first simulations of two runs; each has a seed of its own."""


def run(stage: Stage) -> Outcome:
    """Play simulations until there were enough steps, or a promise is broken."""
    began_s = time.process_time()
    first = stage.terms.seed * _SEEDS_APART
    played, probes = simulations(first, STEPS[stage.terms.profile])
    took_s = time.process_time() - began_s
    steps, last = sum(each.steps for each in played), played[-1]
    return Outcome(
        expected={"broken": None},
        observed={"broken": None if last.check is None else last.story()},
        witness={probe: probes[probe] for probe in sorted(PROBES)},
        measured={
            "simulations": len(played),
            "steps": steps,
            "jobs": sum(each.jobs for each in played),
            "steps a second": round(steps / took_s),
        },
    )


SIM: Final = Scenario(
    id="SIM",
    title="seeded simulations: crashes, outages, lost answers, clock steps; then all is well",
    run=run,
    invariants=("I1", "I2", "I3", "I4", "I5", "I6", "I6'", "I7", "I9", "I12", "I13", "I14", "I16",
                "I19"),
)  # fmt: skip
