"""`timeball cron list` and `timeball cron show`: the schedules of a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.cron_terms import title
from timeball.cli.database import dsn_option, opened
from timeball.cli.output import iso, json_option, shown, utc_option, write, write_json, write_table

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from datetime import datetime

    from timeball.core.cron import Agenda, Occurrence
    from timeball.core.cron.transitions import Transition
    from timeball.core.records import DecidedOccurrence, Schedule

_HISTORY: Final = 10
_HISTORY_MAX: Final = 1_000
_NEXT: Final = 3
_TRANSITIONS: Final = 2
_INDENT: Final = 11


@click.command("list")
@click.option("--state", type=click.Choice(["active", "paused", "error"]), help="Only in this.")
@click.option("--source", help="Only those that this file or program declared.")
@dsn_option
@utc_option
@json_option
def list_(
    *, state: str | None, source: str | None, dsn: str | None, utc: bool, as_json: bool
) -> None:
    """List the schedules of the database."""
    with opened(dsn) as client:
        found = [
            each
            for each in client.schedules()
            if state in {None, each.state} and source in {None, each.spec.source}
        ]
    if as_json:
        write_json({"schedules": [record(each) for each in found]})
        return
    rows = [
        (
            *(each.spec.name, each.spec.expression, each.spec.tz, each.spec.kind, each.spec.queue),
            *(each.state, shown(each.next_at, utc=utc), shown(each.fired_at, utc=utc)),
            *(each.spec.source, each.error or ""),
        )
        for each in found
    ]
    titles = ("name", "schedule", "zone", "kind", "queue", "state", "next", "last")
    write_table((*titles, "source", "error"), rows)


@click.command("show")
@click.argument("name")
@click.option(
    "--history",
    type=click.IntRange(0, _HISTORY_MAX),
    default=_HISTORY,
    show_default=True,
    help="So many of the latest decisions.",
)
@dsn_option
@utc_option
@json_option
def show(name: str, *, history: int, dsn: str | None, utc: bool, as_json: bool) -> None:
    """Show one schedule: its rule, what it will do, and what was decided and why."""
    with opened(dsn) as client:
        schedule = client.get_schedule(name)
        decided = client.occurrences(name, limit=history) if history else []
    found, following, jumps = _ahead(schedule)
    if as_json:
        write_json(
            {
                "schedule": record(schedule),
                "next": [{"at": iso(each.at), "local": each.local} for each in following],
                "transitions": [
                    {"at": iso(each.seam.at), "affected": each.affected, "text": each.text}
                    for each in jumps
                ],
                "history": [_decided_record(each) for each in decided],
            }
        )
        return
    for line in _lines(schedule, found, following, jumps, utc=utc):
        write(line)
    if decided:
        write("")
        rows = [
            (
                *(shown(each.nominal_at, utc=utc), each.decision, each.reason or ""),
                *(each.job or "", each.job_state or ""),
            )
            for each in decided
        ]
        write_table(("occurrence", "decision", "reason", "job", "state"), rows)


def _ahead(schedule: Schedule) -> tuple[Agenda | None, list[Occurrence], list[Transition]]:
    """Return what a schedule will do; nothing where its zone or expression is no longer known."""
    from itertools import islice

    from timeball.client.specs import agenda_of
    from timeball.core.cron.transitions import transitions
    from timeball.errors import InvalidSchedule

    try:
        found = agenda_of(schedule.spec)
    except InvalidSchedule:  # its state says so, and why
        return None, [], []
    if schedule.next_at is None:  # it has run as often, or as long, as its terms say
        return found, [], []
    following = [found.describe(at) for at in islice(found.following(schedule.cursor), _NEXT)]
    return found, following, list(transitions(found, schedule.cursor, _TRANSITIONS))


def _lines(
    schedule: Schedule,
    found: Agenda | None,
    following: list[Occurrence],
    jumps: list[Transition],
    *,
    utc: bool,
) -> Iterator[str]:
    from timeball.cli.cron_preview import told
    from timeball.core.cron.transitions import clocks

    spec = schedule.spec
    facts: dict[str, object] = {
        "schedule": f"{spec.name} (number {schedule.id}, revision {schedule.revision})",
        "runs": f"{spec.kind} {spec.args}",
        "rule": title(found) if found else f"{spec.expression}  in {spec.tz}",
        "terms": "" if spec.terms == "{}" else spec.terms,
        "policy": f"gap: {spec.gap}, overlap: {spec.overlap}, catchup: {spec.catchup}, "
        f"overlap_runs: {spec.overlap_runs}",
        "queue": f"{spec.queue}, priority {spec.priority}, {spec.max_retries} retries",
        "source": spec.source,
        "zone data": schedule.zone_version,
        "state": schedule.state,
        "error": schedule.error,
        "fired": f"{schedule.fired} times" if schedule.fired else "",
        "last": shown(schedule.fired_at, utc=utc),
    }
    for name, value in facts.items():
        if value not in {None, ""}:
            yield f"{name:{_INDENT}}{value}"
    ahead = [told(each) for each in following]
    texts = [f"{clocks(each.seam)}: {each.text}" for each in jumps]
    for heading, block in (("next", ahead or ["never again"]), ("DST", texts)):
        for at, text in enumerate(block):
            yield f"{'' if at else heading:{_INDENT}}{text}"


def record(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule for JSON."""
    spec = schedule.spec
    return {
        "id": schedule.id,
        "name": spec.name,
        "kind": spec.kind,
        "args": json.loads(spec.args),
        "expression": spec.expression,
        "terms": json.loads(spec.terms),
        "tz": spec.tz,
        "gap": spec.gap,
        "overlap": spec.overlap,
        "catchup": spec.catchup,
        "overlap_runs": spec.overlap_runs,
        "queue": spec.queue,
        "priority": spec.priority,
        "max_retries": spec.max_retries,
        "source": spec.source,
        "state": schedule.state,
        "error": schedule.error,
        "revision": schedule.revision,
        "cursor": iso(schedule.cursor),
        "next_at": _iso(schedule.next_at),
        "fired": schedule.fired,
        "fired_at": _iso(schedule.fired_at),
        "zone_data": schedule.zone_version,
    }


def _decided_record(each: DecidedOccurrence) -> dict[str, Any]:
    return {
        "nominal_at": iso(each.nominal_at),
        "decided_at": iso(each.decided_at),
        "decision": each.decision,
        "reason": each.reason,
        "job": each.job,
        "job_state": each.job_state,
    }


def _iso(instant: datetime | None) -> str | None:
    return iso(instant) if instant else None
