"""What a run says of each invariant of the contract, also of those that it has not attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from timeball.certify.registry import SCENARIOS
from timeball.certify.scenario import Result

NAMES: Final = (*(f"I{n}" for n in range(1, 7)), "I6'", *(f"I{n}" for n in range(7, 27)))
UNPLAYED: Final = "unplayed"
ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "I10": "no scenario attacks it: tests/store/test_queues.py does",
        "I20": "no scenario attacks it: the probe of M46 does (--mutants M46)",
        "I21": "no scenario attacks it: the probe of M47 does (--mutants M47)",
    }
)
"""Invariants that no scenario is about, and what is in its place."""


def attacked(results: Sequence[Result], name: str) -> list[Result]:
    """Return what became of the scenarios that attack an invariant."""
    return [each for each in results if name in each.scenario.invariants]


def told(results: Sequence[Result], verdict: str) -> dict[str, Any]:
    """Return what is said of an invariant that was attacked.

    Args:
        results: Of the scenarios that attack it.
        verdict: What they amount to.
    """
    return {
        "verdict": verdict,
        "events": sum(sum(each.outcome.witness.values()) for each in results),
        "scenarios": list(dict.fromkeys(each.scenario.id for each in results)),
        "reason": "",
    }


def unplayed(name: str) -> dict[str, Any]:
    """Return what is said of an invariant that this run has not attacked, and what would."""
    ids = ",".join(each.id for each in SCENARIOS if name in each.invariants)
    reason = ELSEWHERE.get(name, f"not attacked in this run: write --scenario {ids}")
    return {"verdict": UNPLAYED, "events": 0, "scenarios": [], "reason": reason}
