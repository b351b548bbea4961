"""X19: in a rolling deploy workers meet another version's schema, and kinds they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.disasters.poison_kinds import LOADER, TAKES_A
from timeball.certify.effects import BEGAN
from timeball.certify.fleet import Fleet
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.worker.child import Load

_GATE: Final = "go"
_ADVICE: Final = "or install the newer Timeball"


class Deploy:
    """One leg after the other, each with workers of its own.

    Args:
        stage: Where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.met = 0
        """How often a worker has met what is not of its version."""

    def fits(self) -> dict[str, Any]:
        """Have the schema grow under an old worker that it still fits."""
        fleet = self.stage.workers()
        before = self._note()
        self._succeeds(before)
        self.stage.ask("newer_schema")
        self.met += 1
        after = self._note()
        self._succeeds(after)
        return {"lives": not fleet.ended, "exit": fleet.stop(), "turns": self._turns(before, after)}

    def fits_no_more(self) -> dict[str, Any]:
        """Have what an old worker calls go away in the middle of its job; a new one goes on."""
        held = JobSpec(uuid=uuid4(), kind=HOLD, args=f'{{"gate": "{_GATE}"}}')
        self.stage.submit([held])
        fleet = self.stage.workers()
        self.stage.until(lambda: self._began(held.uuid), "the job has begun")
        self.stage.ask("other_schema")
        left = self._note()
        self.stage.until(lambda: _ADVICE in fleet.log.read_text(), "it is told")
        (self.stage.folder / _GATE).touch()
        code = self._ended(fleet)
        waits = str(self.stage.store.get(left).state)
        self.stage.ask("own_schema")
        heir = self.stage.workers()
        self._succeeds(left)
        heir.stop()
        return {"exit": code, "new job": waits, "turns": self._turns(held.uuid, left)}

    def too_new(self) -> dict[str, Any]:
        """Start a worker before the schema has what it calls."""
        self.stage.ask("other_schema")
        left = self._note()
        code = self._ended(self.stage.workers())
        waits = str(self.stage.store.get(left).state)
        self.stage.ask("own_schema")
        heir = self.stage.workers()
        self._succeeds(left)
        heir.stop()
        return {"exit": code, "new job": waits, "turns": self._turns(left)}

    def unknown(self) -> dict[str, Any]:
        """Submit a kind that only new workers know, while there are old ones."""
        spec, store = JobSpec(uuid=uuid4(), kind=TAKES_A, args='{"a": 1}'), self.stage.store
        old = self.stage.workers()
        self.stage.submit([spec])
        self.stage.until(lambda: store.get(spec.uuid).reason == "no_worker", "it is known to wait")
        self.met += 1
        other = self._note()
        self._succeeds(other)
        waits = str(store.get(spec.uuid).state)
        new = self.stage.workers(loads=(Load(target="poison", loader=LOADER),))
        self._succeeds(spec.uuid)
        job = store.get(spec.uuid)
        return {
            "meanwhile": waits,
            "attempts": job.attempts,
            "crashes": job.crashes,
            "exit": [old.stop(), new.stop()],
        }

    def _note(self) -> UUID:
        spec = JobSpec(uuid=uuid4(), kind=NOTE)
        self.stage.submit([spec])
        return spec.uuid

    def _succeeds(self, job: UUID) -> None:
        store = self.stage.store
        self.stage.until(lambda: store.get(job).state is State.SUCCEEDED, "the job has succeeded")

    def _began(self, job: UUID) -> bool:
        return any(each.job == job and each.what == BEGAN for each in self.stage.effects.read())

    def _turns(self, *jobs: UUID) -> list[int]:
        """Return how many turns some jobs took."""
        return [self.stage.store.get(job).turn for job in jobs]

    def _ended(self, fleet: Fleet) -> int:
        """Wait until workers have ended by themselves, and return their exit code."""
        self.stage.until(lambda: fleet.ended, "what does not fit ends")
        self.met += 1
        self.stage.fleets.remove(fleet)  # it is to end otherwise than those that are stopped
        return fleet.stop()


EXPECTED: Final[Mapping[str, Any]] = {
    "old worker, schema that still fits": {"lives": True, "exit": 0, "turns": [1, 1]},
    "old worker, schema that fits no more": {"exit": 6, "new job": "pending", "turns": [1, 1]},
    "new worker, old schema": {"exit": 6, "new job": "pending", "turns": [1]},
    "kind of a new version": {
        "meanwhile": "pending",
        "attempts": 1,
        "crashes": 0,
        "exit": [0, 0],
    },
}


def run(stage: Stage) -> Outcome:
    """Play all, one after the other."""
    deploy = Deploy(stage)
    legs = (deploy.fits, deploy.fits_no_more, deploy.too_new, deploy.unknown)
    observed = {name: leg() for name, leg in zip(EXPECTED, legs, strict=True)}
    stage.drain()
    return Outcome(expected=EXPECTED, observed=observed, witness={"met": deploy.met})


X19: Final = Scenario(
    id="X19",
    title="a rolling deploy: another version's schema, and kinds that old workers do not know",
    run=run,
    invariants=("I3", "I5"),
    profiles=THOROUGH,
)
