"""The options that say when a schedule comes due, the same for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.cron import Timetable

_Command = TypeVar("_Command", bound=Callable[..., Any])


def policy_options(command: _Command) -> _Command:
    """Add `--tz`, `--dst`, `--gap` and `--overlap`."""
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
    ):
        command = option(command)
    return command


def from_option(command: _Command) -> _Command:
    """Add `--from`, as the parameter `start`."""
    return click.option(
        "--from", "start", metavar="INSTANT", help="Only after this; else after now."
    )(command)


def timetable(
    expression: str, *, tz: str | None, dst: str, gap: str | None, overlap: str | None
) -> Timetable:
    """Return what computes the occurrences that a command line describes.

    Raises:
        InvalidSchedule: The expression or the zone is wrong.
    """
    from timeball.cli.times import system_zone
    from timeball.core.cron import Timetable, load_zone, parse, resolve

    cron = parse(expression)
    policy = resolve(cron, dst, gap=gap, overlap=overlap)
    return Timetable(cron, load_zone(tz or system_zone()), policy.gap, policy.overlap)


def beginning(text: str | None, tz: str) -> datetime:
    """Return the instant after which a command looks: a given one, or now."""
    from timeball.chance import now
    from timeball.cli.times import instant

    return instant(text, tz) if text else now()


def facts(table: Timetable) -> dict[str, Any]:
    """Return what a schedule is made of, for JSON."""
    return {
        "expression": table.cron.canonical(),
        "tz": table.zone.name,
        "zone_data": table.zone.version,
        "gap": str(table.gap),
        "overlap": str(table.overlap),
    }
