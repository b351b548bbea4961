"""What the schedules of `up` will do next, and what one should know about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from timeball.cli.declared import Declared
from timeball.cli.output import iso, write, write_table
from timeball.core.cron import Agenda, Occurrence, warnings
from timeball.core.cron.transitions import clocks, transitions

_NEXT: Final = 2
_TRANSITIONS: Final = 2
_DOES_MAX: Final = 60


class Outlook(NamedTuple):
    """One schedule, seen from an instant."""

    schedule: Declared
    following: list[Occurrence]
    remarks: list[str]


def outlook(schedule: Declared, after: datetime) -> Outlook:
    """Return what a schedule will do after an instant."""
    table = schedule.table
    return Outlook(
        schedule,
        [table.describe(at) for at in islice(table.following(after), _NEXT)],
        [
            *(f"note: {text}" for text in schedule.notes),
            *surprises(table, after),
        ],
    )


def surprises(table: Agenda, after: datetime) -> list[str]:
    """Return what somebody should know who declares a schedule: warnings, and clock changes."""
    jumps = [each for each in transitions(table, after, _TRANSITIONS) if each.affected]
    return [
        *(f"warning: {text}" for text in warnings(table, after)),
        *(f"DST: {clocks(each.seam)}: {each.text}" for each in jumps),
    ]


def record(seen: Outlook) -> dict[str, Any]:
    """Return an outlook for JSON."""
    schedule, spec = seen.schedule, seen.schedule.spec
    return {
        "name": spec.name,
        "place": schedule.place,
        "expression": spec.expression,
        "tz": spec.tz,
        "gap": spec.gap,
        "overlap": spec.overlap,
        "does": schedule.does,
        "next": [{"at": iso(each.at), "local": each.local} for each in seen.following],
        "remarks": seen.remarks,
    }


def write_outlooks(outlooks: Sequence[Outlook], *, utc: bool) -> None:
    """Write a table of schedules, and below it each remark with the schedules that it is about."""
    titles = ["name", "schedule", "zone", "next", "then", "does"]
    if utc:
        titles.insert(5, "next in UTC")
    rows = []
    about = defaultdict(list)
    for schedule, following, remarks in outlooks:
        times = [each.local.replace("T", " ") for each in following]
        times += ["never"] * (_NEXT - len(times))
        if utc:
            times.append(iso(following[0].at) if following else "never")
        spec = schedule.spec
        rows.append((spec.name, spec.expression, spec.tz, *times, _cut(schedule.does)))
        for remark in remarks:
            about[remark].append(spec.name)
    if rows:
        write_table(titles, rows)
    for remark, names in about.items():
        everyone = len(names) == len(outlooks) > 1
        write(f"{remark} [{'all' if everyone else ', '.join(names)}]")


def _cut(text: str) -> str:
    return text if len(text) <= _DOES_MAX else f"{text[: _DOES_MAX - 1]}…"
