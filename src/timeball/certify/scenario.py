"""What a scenario is, and what it says when it has been played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:  # the stage is made of these records
    from timeball.certify.stage import Stage


class Profile(StrEnum):
    """How much is played."""

    QUICK = "quick"  # two minutes on two cores
    FULL = "full"
    SOAK = "soak"  # the scenarios of "full" under one seed after the other


class Status(StrEnum):
    """What came of a scenario."""

    PASSED = "passed"
    VIOLATED = "violated"  # a promise was broken
    VACUOUS = "vacuous"  # nothing was broken, but the fault was never met either
    SKIPPED = "skipped"  # this machine lacks something; the reason says what
    BROKEN = "broken"  # the harness failed, so nobody knows


class Skipped(Exception):
    """This machine cannot play the scenario; the text says what it lacks."""


class Stalled(Exception):
    """What must happen in the end did not within its deadline: a promise is broken."""


class Check(NamedTuple):
    """One thing that must hold."""

    name: str
    """What a mutant names as its killer: "once", "audit", "leaks" …"""

    holds: bool
    text: str = ""
    """What was found, where it does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scenario saw."""

    expected: Mapping[str, Any]
    """What must be seen, exactly; JSON values."""

    observed: Mapping[str, Any]
    """What was seen, under the same names. It is the same for the same seed."""

    witness: Mapping[str, int] = field(default_factory=dict)
    """How often each fault that the scenario is about was met. A zero makes it vacuous."""

    checks: tuple[Check, ...] = ()
    """What must hold besides: bounds and agreements that are no exact values."""

    measured: Mapping[str, Any] = field(default_factory=dict)
    """Figures for people, other in every run."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    """Legs that this machine cannot play, with what it lacks."""


ALL_PROFILES: Final = frozenset(Profile)
THOROUGH: Final = ALL_PROFILES - {Profile.QUICK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One attack on the promises."""

    id: str
    """Such as "A" or "X1"."""

    title: str
    """What is forced, in one line."""

    run: Callable[[Stage], Outcome]
    """Plays it once: sets the scene, does the harm, heals it, waits for the end, and tells."""

    invariants: tuple[str, ...]
    """Which of the contract's invariants it attacks."""

    founding: str | None = None
    """Its name in the founding exercise, such as "sc_A"."""

    profiles: frozenset[Profile] = ALL_PROFILES
    own_server: bool = False
    """Whether it stops, kills or fills the server, which must then be one of our own."""

    deadline_s: float = 120.0
    """After so long a wait of the stage counts as stalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one scenario under one seed."""

    scenario: Scenario
    seed: int
    status: Status
    outcome: Outcome
    checks: tuple[Check, ...]
    """All that were made, those of the harness among them."""

    reason: str = ""
    """Why it was skipped, is vacuous or broken; what stalled."""

    wall_s: float = 0.0
    phases_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Return the checks that do not hold."""
        return tuple(check for check in self.checks if not check.holds)


def judged(outcome: Outcome, checks: tuple[Check, ...] = ()) -> tuple[Status, tuple[Check, ...]]:
    """Return what an outcome amounts to, and every check that this rests on.

    Args:
        outcome: What the scenario saw.
        checks: What the harness checked afterwards.
    """
    names = sorted(outcome.expected.keys() | outcome.observed.keys())
    exact = tuple(_compared(outcome, name) for name in names)
    made = (*exact, *outcome.checks, *checks)
    if not all(check.holds for check in made):
        return Status.VIOLATED, made
    if not outcome.witness or not all(outcome.witness.values()):
        return Status.VACUOUS, made
    return Status.PASSED, made


def _compared(outcome: Outcome, name: str) -> Check:
    missing = object()
    wanted = outcome.expected.get(name, missing)
    seen = outcome.observed.get(name, missing)
    if missing in (wanted, seen):
        return Check(name, holds=False, text="is not both expected and observed")
    return Check(name, wanted == seen, "" if wanted == seen else f"{seen!r}, not {wanted!r}")
