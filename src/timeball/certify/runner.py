"""Plays scenarios one after the other, each on a database of its own, and judges them.

The phases of each: setup, load and faults, heal, drain with a deadline, quiesce, audit, leak check.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from timeball.certify.boot import Boot
from timeball.certify.databases import Change, Databases, serving
from timeball.certify.scenario import (
    Check,
    Outcome,
    Profile,
    Result,
    Scenario,
    Skipped,
    Stalled,
    Status,
    judged,
)
from timeball.certify.stage import Stage, Terms
from timeball.errors import UsageError

SOAK_SEEDS: Final = 20
"""So many seeds, one after the other, has a soak."""

_NOTHING: Final = Outcome(expected={}, observed={})
_FOREIGN: Final = "it is done to certify's own server only: leave --dsn out"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be played, and how."""

    scenarios: tuple[Scenario, ...]
    out: Path
    """The folder that `history.jsonl` is written to; it must exist."""

    profile: Profile = Profile.QUICK
    seed: int = 1
    dsn: str | None = None
    """A server of somebody's; None: an embedded one, which is gone afterwards."""

    named: bool = False
    """Whether the scenarios were asked for by name, so that none may be passed over."""

    boots: tuple[Boot, ...] = ()
    """Defects put into every process that is started."""

    changes: tuple[Change, ...] = ()
    """Defects put into the schema."""


def certify(order: Order, say: Say = lambda _text: None) -> list[Result]:
    """Play all and return what became of each; nothing is left running or lying about.

    Args:
        order: What is to be played.
        say: Told a line of progress at a time.

    Raises:
        UsageError: A scenario was asked for that would stop a server that is not certify's own.
        StoreUnavailable: The server given cannot be reached, or makes no databases for this user.
        EmbeddedUnavailable: The embedded one would not start.
    """
    foreign = [each.id for each in order.scenarios if each.own_server and order.dsn]
    if foreign and order.named:
        raise UsageError(f"scenario {', '.join(foreign)}: {_FOREIGN}")
    say("starting PostgreSQL …" if order.dsn is None else "making databases on the given server …")
    results = []
    with serving(order.dsn, order.changes) as databases:
        databases.migrated()
        for scenario, seed in _plan(order):
            say(f"{scenario.id}: {scenario.title}")
            result = _played(scenario, seed, order, databases)
            results.append(result)
            say(told(result))
    return results


def told(result: Result) -> str:
    """Return one line about a result."""
    seen = f"faults met: {sum(result.outcome.witness.values())}"
    broken = "; ".join(f"{check.name}: {check.text}" for check in result.failed)
    why = broken or result.reason.strip().rpartition("\n")[2] or seen
    return f"{result.scenario.id}: {result.status} in {result.wall_s:.1f} s ({why})"


def play(scenario: Scenario, stage: Stage) -> Result:
    """Play a scenario once and judge it; whatever happens, the stage is closed in the end."""
    began = time.monotonic()
    try:
        result = _outcome(scenario, stage)
    except Skipped as skipped:
        result = _without(scenario, stage.terms.seed, Status.SKIPPED, str(skipped))
    except Stalled as stalled:
        check = Check("progress", holds=False, text=str(stalled))
        result = _without(scenario, stage.terms.seed, Status.VIOLATED, str(stalled), check)
    except Exception:  # noqa: BLE001 - whatever a fault does to its scenario, the others go on
        result = _without(scenario, stage.terms.seed, Status.BROKEN, traceback.format_exc())
    finally:
        stage.close()
    return replace(result, wall_s=time.monotonic() - began, phases_s=dict(stage.phases.spent_s))


def _outcome(scenario: Scenario, stage: Stage) -> Result:
    outcome = scenario.run(stage)
    stage.phases.done("load and faults")
    checks = (*stage.checks, *stage.quiesce(), *stage.audit(), *stage.leaks())
    status, made = judged(outcome, checks)
    reason = ""
    if status is Status.VACUOUS:
        unseen = [name for name, count in outcome.witness.items() if not count]
        reason = f"never witnessed: {', '.join(unseen) or 'any fault'}"
    return Result(
        scenario=scenario,
        seed=stage.terms.seed,
        status=status,
        outcome=outcome,
        checks=made,
        reason=reason,
    )


def _without(scenario: Scenario, seed: int, status: Status, reason: str, *checks: Check) -> Result:
    return Result(
        scenario=scenario,
        seed=seed,
        status=status,
        outcome=_NOTHING,
        checks=checks,
        reason=reason,
    )


def _plan(order: Order) -> Iterator[tuple[Scenario, int]]:
    seeds = SOAK_SEEDS if order.profile is Profile.SOAK else 1
    for seed in range(order.seed, order.seed + seeds):
        for scenario in order.scenarios:
            yield scenario, seed


def _played(scenario: Scenario, seed: int, order: Order, databases: Databases) -> Result:
    if scenario.own_server and databases.own is None:
        return _without(scenario, seed, Status.SKIPPED, _FOREIGN)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"timeball-{scenario.id.lower()}-"))
    terms = Terms(
        seed=seed,
        profile=order.profile,
        boots=order.boots,
        deadline_s=scenario.deadline_s,
        own_server=databases.own,
    )
    result = None
    try:
        with databases.lent() as dsn:
            stage = Stage(dsn, folder, terms, scenario.id)
            stage.phases.done("setup")
            result = play(scenario, stage)
        _keep(folder / "history.jsonl", order.out / "history.jsonl")
    except Exception:  # noqa: BLE001 - the server may be gone: what came of the others is still told
        if result is None or result.status is not Status.VIOLATED:
            result = _without(scenario, seed, Status.BROKEN, traceback.format_exc())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return replace(result, wall_s=time.monotonic() - began)


def _keep(history: Path, out: Path) -> None:
    """Append the history of one scenario to that of all."""
    with out.open("a", encoding="utf-8") as file:
        file.write(history.read_text("utf-8"))
