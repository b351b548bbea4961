"""What a schedule does at a transition of its zone, told to people and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from timeball.cli.output import iso
from timeball.core.cron import Occurrence
from timeball.core.cron.transitions import RUNS_MAX, Runs, Transition, clocks, wall


def lines(found: Transition) -> Iterator[str]:
    """Yield what there is to say about a transition, for people."""
    seam = found.seam
    yield (f"{clocks(seam)} at {iso(seam.at)}; {seam.day:%Y-%m-%d} has {found.hours:g} hours")
    yield f"  {found.text}"
    for choice in found.choices:
        mark = "*" if choice.chosen else " "
        head = f"  {mark} {choice.option}={choice.value}"
        yield from _run_lines(f"{head:22}", choice.runs, choice.outcome)
    if not found.choices and found.day_runs.total:
        yield from _run_lines("    that day it runs  ", found.day_runs, "as on any day")
    elif not found.choices:
        yield "    that day it does not run at all"


def _run_lines(head: str, runs: Runs, outcome: str) -> Iterator[str]:
    for at, each in enumerate(runs.shown):
        note = f"  {outcome}" if at == 0 else ""
        yield f"{head if at == 0 else ' ' * len(head)}{told(each)}{note}"
    if not runs.shown:
        yield f"{head}{'no occurrence':47}  {outcome}"
    if runs.total > len(runs.shown):
        more = f"{RUNS_MAX:,} or more" if runs.total == RUNS_MAX else str(runs.total)
        yield f"{' ' * len(head)}… {more} in all"


def told(occurrence: Occurrence) -> str:
    """Return an occurrence in local time and in UTC."""
    return f"{occurrence.local.replace('T', ' ')}  {iso(occurrence.at)}"


def record(found: Transition) -> dict[str, Any]:
    """Return a transition for JSON."""
    seam = found.seam
    return {
        "at": iso(seam.at),
        "before": wall(seam, seam.before_s),
        "after": wall(seam, seam.after_s),
        "kind": "gap" if seam.is_gap else "overlap",
        "day": seam.day.isoformat(),
        "day_hours": found.hours,
        "day_occurrences": _runs_record(found.day_runs),
        "affected": found.affected,
        "text": found.text,
        "policies": [
            {
                "option": each.option,
                "value": each.value,
                "chosen": each.chosen,
                "outcome": each.outcome,
                **_runs_record(each.runs),
            }
            for each in found.choices
        ],
    }


def _runs_record(runs: Runs) -> dict[str, Any]:
    return {
        "count": runs.total,
        "first": [{"at": iso(each.at), "local": each.local} for each in runs.shown],
    }
