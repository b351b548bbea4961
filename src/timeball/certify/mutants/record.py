"""One defect: what it is, how it is put in, where, and which check must see it."""

from __future__ import annotations

from dataclasses import dataclass

from timeball.certify.overlay import Overlay, Patch
from timeball.certify.stepper import Chooser
from timeball.certify.story import Outcome
from timeball.certify.trial import Scenario, engine_copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A defect of the in-process engine."""

    id: str
    defect: str
    scenario: Scenario
    check: str
    """The name of the check that must fail, and be the first to."""

    patches: tuple[Patch, ...]

    def copies(self) -> Overlay:
        """Return copies of the engine that have the defect.

        Raises:
            Drift: A patch does not fit any more.
        """
        return engine_copies(self.patches, label=self.id)

    def run(self, copies: Overlay, chooser: Chooser) -> Outcome:
        """Run the scenario once, on copies with the defect, with switch points where it is."""
        changed = [patch.function for patch in self.patches]
        return self.scenario.run(copies, chooser, changed)
