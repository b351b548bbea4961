"""What a schedule does at a transition of its zone, and what it would do by another policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from timeball.cli.cron_days import Seam, hours, midnight, seam_at
from timeball.cli.output import iso
from timeball.core.cron import Gap, Occurrence, Overlap, Preview, Timetable

_RUNS_MAX: Final = 1_000
_SHOWN: Final = 3


class Runs(NamedTuple):
    """Occurrences in a stretch of time."""

    shown: list[Occurrence]
    """The first few."""

    total: int
    """Of all; counted to 1,000."""


class Choice(NamedTuple):
    """One policy, and what becomes by it of the wall times that are missing or come twice."""

    option: str
    """"gap" or "overlap"."""

    value: str
    chosen: bool
    outcome: str
    runs: Runs


class Transition(NamedTuple):
    """One transition with everything that can be said about it."""

    preview: Preview
    seam: Seam
    hours: float
    """How long its day is."""

    day_runs: Runs
    """What runs on its day."""

    choices: list[Choice]
    """Every policy, where it matters."""


def transition(timetable: Timetable, preview: Preview) -> Transition:
    """Return what a schedule does at one transition, and on the day of it."""
    seam = seam_at(timetable.zone, preview.at)
    begin = midnight(timetable.zone, seam.day)
    end = midnight(timetable.zone, seam.day + timedelta(days=1))
    second = timedelta(seconds=1)
    return Transition(
        preview,
        seam,
        hours([seam]),
        _runs(timetable, _between(timetable, begin - second, end - second)),
        _choices(timetable, seam) if preview.affected else [],
    )


def _choices(timetable: Timetable, seam: Seam) -> list[Choice]:
    if not seam.is_gap:
        begin, end = seam.at + timedelta(seconds=seam.jump_s), seam.at
        end -= timedelta(seconds=seam.jump_s)
        return [_of_overlap(timetable, value, begin, end) for value in Overlap]
    unit = timedelta(seconds=timetable.cron.unit_s)
    begin, end = seam.at - unit, seam.at + timedelta(seconds=seam.jump_s)
    usual = set(_within(replace(timetable, gap=Gap.SKIP), begin, end))
    return [_of_gap(timetable, value, usual, begin, end) for value in Gap]


def _of_gap(
    timetable: Timetable, value: Gap, usual: set[datetime], begin: datetime, end: datetime
) -> Choice:
    found = _within(replace(timetable, gap=value), begin, end)
    moved = [at for at in found if at not in usual]
    if value is Gap.SKIP:
        outcome = "skipped"
    elif moved:
        outcome = "shifted, once" if len(moved) == 1 else "shifted, each"
    else:
        outcome = "one with the occurrence that is due then anyway"
    return Choice("gap", value, value is timetable.gap, outcome, _runs(timetable, moved))


def _of_overlap(timetable: Timetable, value: Overlap, begin: datetime, end: datetime) -> Choice:
    found = _within(replace(timetable, overlap=value), begin, end)
    outcome = {
        Overlap.FIRST: "once, the first time",
        Overlap.SECOND: "once, the second time",
        Overlap.BOTH: "twice",
    }[value]
    return Choice("overlap", value, value is timetable.overlap, outcome, _runs(timetable, found))


def _within(timetable: Timetable, begin: datetime, end: datetime) -> list[datetime]:
    second = timedelta(seconds=1)
    return _between(timetable, begin - second, end - second)


def _between(timetable: Timetable, after: datetime, until: datetime) -> list[datetime]:
    return timetable.between(after, until, limit=_RUNS_MAX)


def _runs(timetable: Timetable, instants: list[datetime]) -> Runs:
    return Runs([timetable.describe(at) for at in instants[:_SHOWN]], len(instants))


def lines(found: Transition) -> Iterator[str]:
    """Yield what there is to say about a transition, for people."""
    jump, day = found.preview, found.seam.day
    yield (
        f"{jump.before} becomes {jump.after} at {iso(jump.at)}; "
        f"{day:%Y-%m-%d} has {found.hours:g} hours"
    )
    yield f"  {jump.text}"
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
        more = f"{_RUNS_MAX:,} or more" if runs.total == _RUNS_MAX else str(runs.total)
        yield f"{' ' * len(head)}… {more} in all"


def told(occurrence: Occurrence) -> str:
    """Return an occurrence in local time and in UTC."""
    return f"{occurrence.local.replace('T', ' ')}  {iso(occurrence.at)}"


def record(found: Transition) -> dict[str, Any]:
    """Return a transition for JSON."""
    jump = found.preview
    return {
        "at": iso(jump.at),
        "before": jump.before,
        "after": jump.after,
        "kind": "gap" if found.seam.is_gap else "overlap",
        "day": found.seam.day.isoformat(),
        "day_hours": found.hours,
        "day_occurrences": _runs_record(found.day_runs),
        "affected": jump.affected,
        "text": jump.text,
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
