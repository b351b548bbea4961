"""What a run of certify came to, as one JSON document; `results.schema.json` describes it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from timeball import __version__
from timeball.certify.mutants.verdicts import Verdict
from timeball.certify.promises import NAMES, attacked, told, unplayed
from timeball.certify.scenario import Profile, Result, Status

SCHEMA: Final = 1
FOUNDING: Final = ("sc_A", "sc_B", "sc_B2", "sc_C2", "sc_D", "sc_E", "sc_F", "sc_G")
"""The names of the founding exercise."""


class Exit(IntEnum):
    """What the exit code of a run says."""

    PASSED = 0
    VIOLATED = 1
    VACUOUS = 2
    BROKEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Under what terms scenarios were played, and what became of them."""

    results: Sequence[Result]
    profile: Profile
    seed: int
    at: str
    """When it began: an instant in UTC, as ISO 8601 writes it."""

    mutants: Sequence[Verdict] = ()
    """What became of the defects that were put in, where the run was about these."""

    peers: Mapping[str, Any] | None = None
    """What was seen of Timeball and of others, where the run was about that: a `block`."""


def verdict(results: Iterable[Result]) -> Exit:
    """Return what a run amounts to: the worst that happened; nothing played is vacuous."""
    seen = {result.status for result in results}
    if Status.VIOLATED in seen:
        return Exit.VIOLATED
    if Status.BROKEN in seen:
        return Exit.BROKEN
    if Status.VACUOUS in seen or Status.PASSED not in seen:
        return Exit.VACUOUS
    return Exit.PASSED


def document(run: Run) -> dict[str, Any]:
    """Return the document of a run."""
    verdicts = {"mutants": _mutants(run.mutants)} if run.mutants else {}
    seen = {"peers": dict(run.peers)} if run.peers is not None else {}
    return {
        "schema": SCHEMA,
        "product": {"name": "timeball", "version": __version__},
        "env": {
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
            "cpus": os.cpu_count() or 1,
        },
        "at": run.at,
        "profile": str(run.profile),
        "seed": run.seed,
        "verdict": _verdict(run).name.lower(),
        "founding": _founding(run.results),
        "scenarios": {_key(each, run.seed): _record(each, run.profile) for each in run.results},
        "invariants": _invariants(run.results),
        **verdicts,
        **seen,
    }


def peers_verdict(peers: Mapping[str, Any]) -> Exit:
    """Return what a comparison amounts to: what becomes of others is no verdict on Timeball."""
    return Exit.PASSED if peers["kept"] else Exit.VIOLATED


def _verdict(run: Run) -> Exit:
    if run.peers is not None:
        return peers_verdict(run.peers)
    return mutants_verdict(run.mutants) if run.mutants else verdict(run.results)


def mutants_verdict(verdicts: Iterable[Verdict]) -> Exit:
    """Return what a run of defects amounts to: each must be killed."""
    return Exit.PASSED if all(each.killed for each in verdicts) else Exit.VIOLATED


def _mutants(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "total": len(verdicts),
        "killed": sum(each.killed for each in verdicts),
        "matrix": {
            each.id: {
                "defect": each.defect,
                "check": each.check,
                "sound": each.sound,
                "killed": each.killed,
                "seen": each.seen,
                "wall_s": round(each.wall_s, 3),
            }
            for each in verdicts
        },
    }


def _key(result: Result, seed: int) -> str:
    if result.seed == seed:
        return result.scenario.id
    return f"{result.scenario.id}#{result.seed}"


def _founding(results: Iterable[Result]) -> dict[str, Any]:
    """Return expected and observed values by the names of the founding exercise; first seed."""
    found: dict[str, Any] = {}
    for result in results:
        name = result.scenario.founding
        if name is not None:
            found.setdefault(
                name,
                {
                    "scenario": result.scenario.id,
                    "status": str(result.status),
                    "expected": dict(result.outcome.expected),
                    "observed": dict(result.outcome.observed),
                },
            )
    return {name: found[name] for name in FOUNDING if name in found}


def _record(result: Result, profile: Profile) -> dict[str, Any]:
    scenario, outcome = result.scenario, result.outcome
    words = f"--profile {_once(profile)} --scenario {scenario.id} --seed {result.seed}"
    return {
        "title": scenario.title,
        "founding": scenario.founding,
        "invariants": list(scenario.invariants),
        "status": str(result.status),
        "reason": result.reason,
        "expected": dict(outcome.expected),
        "observed": dict(outcome.observed),
        "checks": [check._asdict() for check in result.checks],
        "witness": dict(outcome.witness),
        "measured": dict(outcome.measured),
        "left_out": dict(outcome.left_out),
        "seed": result.seed,
        "wall_s": round(result.wall_s, 3),
        "phases_s": {name: round(spent, 3) for name, spent in result.phases_s.items()},
        "replay": f"timeball certify {words} --out again",
    }


def _once(profile: Profile) -> Profile:
    """Return what plays under one seed what a profile plays under each of its own."""
    return Profile.FULL if profile is Profile.SOAK else profile


def _invariants(results: Sequence[Result]) -> dict[str, Any]:
    """Return for each invariant what became of the scenarios that attack it, or why none has."""
    found = {name: attacked(results, name) for name in NAMES}
    return {
        name: told(some, verdict(some).name.lower()) if some else unplayed(name)
        for name, some in found.items()
    }


def to_replay(document: Mapping[str, Any]) -> tuple[list[str], int, Profile]:
    """Return which scenarios of a document to play again, the seed and the profile.

    Those that neither passed nor were skipped; all where there are none.
    """
    fine = {Status.PASSED, Status.SKIPPED}
    records: Mapping[str, Any] = document["scenarios"]
    wanted = [key for key, record in records.items() if record["status"] not in fine]
    chosen = wanted or list(records)
    seed = int(records[chosen[0]]["seed"])
    ids = [key.partition("#")[0] for key in chosen if records[key]["seed"] == seed]
    return ids, seed, _once(Profile(document["profile"]))
