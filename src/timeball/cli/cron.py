"""`timeball cron`: when schedules run, and why then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from timeball.cli.cron_calendar import calendar
from timeball.cli.cron_times import explain, next_
from timeball.cli.database import dsn_option, opened
from timeball.cli.output import iso, json_option, shown, utc_option, write_json, write_table

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.records import Schedule


@click.group()
def command() -> None:
    """Say when schedules run, and why then."""


for _command in (next_, explain, calendar):
    command.add_command(_command)


@command.command("list")
@dsn_option
@utc_option
@json_option
def list_(*, dsn: str | None, utc: bool, as_json: bool) -> None:
    """List the schedules of the database."""
    with opened(dsn) as client:
        found = client.schedules()
    if as_json:
        write_json({"schedules": [_record(each) for each in found]})
        return
    rows = [
        (
            *(each.spec.name, each.spec.expression, each.spec.tz, each.spec.kind),
            *(each.state, shown(each.next_at, utc=utc), each.error or ""),
        )
        for each in found
    ]
    write_table(("name", "schedule", "zone", "kind", "state", "next", "error"), rows)


def _record(schedule: Schedule) -> dict[str, Any]:
    spec = schedule.spec
    return {
        "id": schedule.id,
        "name": spec.name,
        "kind": spec.kind,
        "expression": spec.expression,
        "tz": spec.tz,
        "gap": spec.gap,
        "overlap": spec.overlap,
        "catchup": spec.catchup,
        "source": spec.source,
        "state": schedule.state,
        "error": schedule.error,
        "cursor": iso(schedule.cursor),
        "next_at": iso(schedule.next_at) if schedule.next_at else None,
    }
