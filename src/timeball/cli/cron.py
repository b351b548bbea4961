"""`timeball cron`: when schedules run, and why then."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import (
    iso,
    json_option,
    say,
    shown,
    utc_option,
    write,
    write_json,
    write_table,
)

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.cron import Preview, Timetable
    from timeball.core.records import Schedule

_COUNT_MAX = 10_000


@click.group()
def command() -> None:
    """Say when schedules run, and why then."""


def _policy_options(function: Any) -> Any:
    gap = click.Choice(["next_valid", "shift", "skip", "prev_valid"])
    overlap = click.Choice(["first", "second", "both"])
    for option in (
        click.option("--overlap", type=overlap, help="Which pass of a repeated time runs."),
        click.option("--gap", type=gap, help="What becomes of a time that the clock skips."),
        click.option(
            "--dst",
            type=click.Choice(["auto", "cron"]),
            default="auto",
            show_default=True,
            help="How gap and overlap are chosen where they are not given.",
        ),
        click.option("--tz", help="Time zone, such as Europe/Paris; else this machine's."),
        click.argument("expression"),
    ):
        function = option(function)
    return function


@command.command("next")
@_policy_options
@click.option("--from", "start", metavar="INSTANT", help="Only after this; else now.")
@click.option("-n", "--count", type=click.IntRange(1, _COUNT_MAX), default=10, show_default=True)
@json_option
def next_(expression: str, *, start: str | None, count: int, as_json: bool, **rule: Any) -> None:
    """Show the next occurrences of EXPRESSION (five or six fields, or a nickname)."""
    timetable = _timetable(expression, **rule)
    after = _start(start, timetable.zone.name)
    found = [timetable.describe(at) for at in islice(timetable.following(after), count)]
    if as_json:
        occurrences = [
            {"at": iso(each.at), "local": each.local, "fold": each.fold, "shifted": each.shifted}
            for each in found
        ]
        write_json({**_facts(timetable), "from": iso(after), "occurrences": occurrences})
        return
    say(f"{timetable.cron.canonical()} in {timetable.zone.name}")
    rows = [
        (each.local.replace("T", " "), iso(each.at), "moved by a gap" if each.shifted else "")
        for each in found
    ]
    write_table(("local", "utc", "note"), rows)


@command.command("explain")
@_policy_options
@click.option("--year", type=click.IntRange(1901, 2999), help="Look at that year; else from now.")
@json_option
def explain(expression: str, *, year: int | None, as_json: bool, **rule: Any) -> None:
    """Say what EXPRESSION means and what daylight-saving time does to it."""
    from timeball.core.cron import dst_preview, prose, warnings

    timetable = _timetable(expression, **rule)
    after = datetime(year - 1, 12, 31, 23, 59, 59, tzinfo=UTC) if year else _start(None, "UTC")
    following = [timetable.describe(at) for at in islice(timetable.following(after), 5)]
    preview, warned = dst_preview(timetable, after), warnings(timetable, after)
    if as_json:
        write_json(
            {
                **_facts(timetable),
                "prose": prose(timetable.cron),
                "occurrences": [{"at": iso(each.at), "local": each.local} for each in following],
                "transitions": [_transition(each) for each in preview],
                "warnings": warned,
            }
        )
        return
    write(f"{timetable.cron.canonical()}  in {timetable.zone.name}: {prose(timetable.cron)}")
    write(f"class   {_class(timetable)}")
    for at, each in enumerate(following):
        write(f"{'' if at else 'next':8}{each.local.replace('T', ' ')}  {iso(each.at)}")
    for at, each_preview in enumerate(preview):
        write(f"{'' if at else 'DST':8}{preview_line(each_preview)}")
    if not preview:
        write(f"{'DST':8}this zone has no transition ahead")
    for text in warned:
        write(f"warning {text}")


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


def preview_line(preview: Preview) -> str:
    """Return what happens at one transition, as one line."""
    return f"{preview.before} becomes {preview.after}: {preview.text}"


def _timetable(
    expression: str, *, tz: str | None, dst: str, gap: str | None, overlap: str | None
) -> Timetable:
    from timeball.cli.times import system_zone
    from timeball.core.cron import Timetable, load_zone, parse, resolve

    cron = parse(expression)
    policy = resolve(cron, dst, gap=gap, overlap=overlap)
    return Timetable(cron, load_zone(tz or system_zone()), policy.gap, policy.overlap)


def _start(text: str | None, tz: str) -> datetime:
    from timeball.chance import now
    from timeball.cli.times import instant

    return instant(text, tz) if text else now()


def _facts(timetable: Timetable) -> dict[str, Any]:
    return {
        "expression": timetable.cron.canonical(),
        "tz": timetable.zone.name,
        "zone_data": timetable.zone.version,
        "gap": str(timetable.gap),
        "overlap": str(timetable.overlap),
    }


def _class(timetable: Timetable) -> str:
    interval = len(timetable.cron.hour.values) == 24  # noqa: PLR2004 - hours of a day
    name = "interval (all 24 hours)" if interval else "fixed times"
    return f"{name}; gap: {timetable.gap}, overlap: {timetable.overlap}"


def _transition(preview: Preview) -> dict[str, Any]:
    return {
        "at": iso(preview.at),
        "before": preview.before,
        "after": preview.after,
        "affected": preview.affected,
        "text": preview.text,
    }


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
