"""The options that say when a schedule comes due, the same for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from timeball.errors import InvalidSchedule, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.cron import Agenda

_Command = TypeVar("_Command", bound=Callable[..., Any])


def rule_options(command: _Command) -> _Command:
    """Add everything that says when a schedule comes due, but for its expression and name."""
    gap = click.Choice(["next_valid", "shift", "skip", "prev_valid"])
    overlap = click.Choice(["first", "second", "both"])
    on_excluded = click.Choice(["skip", "next", "prev"])
    for option in (
        click.option(
            "--jitter", metavar="DURATION", help="Up to so much later: how much goes by its name."
        ),
        click.option("--end", metavar="INSTANT", help="Nothing comes due after it."),
        click.option("--start", metavar="INSTANT", help="Nothing comes due before it."),
        click.option(
            "--day-rule",
            type=click.Choice(["cron", "and", "or"]),
            help="Where both day fields are set.",
        ),
        click.option(
            "--on-excluded", type=on_excluded, help="Skip, or move to the next or last open day."
        ),
        click.option(
            "--exclude",
            multiple=True,
            metavar="WHAT",
            help="A date, a range of dates, a cron expression, holidays:DE-BY; or several times.",
        ),
        click.option(
            "--any-of", multiple=True, metavar="EXPR", help="One more expression; or several times."
        ),
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


def expression_options(command: _Command) -> _Command:
    """Add EXPRESSION and its rule, for the commands that need no database."""
    name = click.option("--name", help="Of the schedule: H and jitter go by it.")
    return click.argument("expression")(rule_options(name(command)))


def from_option(command: _Command) -> _Command:
    """Add `--from`, as the parameter `begin`."""
    return click.option(
        "--from", "begin", metavar="INSTANT", help="Only after this; else after now."
    )(command)


def coming(expression: str, *, name: str | None, **rule: Any) -> Agenda:
    """Return the occurrences that a command line describes.

    Raises:
        InvalidSchedule: The expression, the zone or an exclusion is wrong.
        UsageError: What goes by a name has none.
    """
    from timeball.chance import system_zone
    from timeball.core.cron import Terms, agenda, load_zone, settled

    if name is None:
        for text in (expression, *rule["any_of"]):
            _nameless(text)
        if rule["jitter"]:
            raise UsageError("--jitter goes by the name of the schedule: write --name too")
    zone = load_zone(rule["tz"] or system_zone())
    terms, policy = settled(
        Terms(expression=expression, **given_terms(rule, zone.name)),
        rule["dst"],
        gap=rule["gap"],
        overlap=rule["overlap"],
        name=name or "",
    )
    return agenda(terms, zone, policy, name=name or "")


def _nameless(text: str) -> None:
    """Refuse an expression that goes by a name, where there is none."""
    from timeball.core.cron import read

    try:
        read(text)
    except InvalidSchedule as error:
        read(text, name="")  # what is wrong in it besides says so itself
        raise UsageError(
            f"{text!r} holds an H, which goes by the name of the schedule: write --name too"
        ) from error


def given_terms(rule: Mapping[str, Any], tz: str) -> dict[str, Any]:
    """Return those terms of a command line that are not as usual, by the names of `Terms`.

    Instants without a zone are in `tz`.
    """
    from timeball.cli.times import instant, seconds

    given = {name: rule[name] for name in ("any_of", "exclude", "on_excluded", "day_rule")}
    given |= {
        "start_at": instant(rule["start"], tz) if rule["start"] else None,
        "end_at": instant(rule["end"], tz) if rule["end"] else None,
        "jitter_s": int(seconds(rule["jitter"])) if rule["jitter"] else None,
    }
    return {name: value for name, value in given.items() if value}


def beginning(text: str | None, tz: str) -> datetime:
    """Return the instant after which a command looks: a given one, or now."""
    from timeball.chance import now
    from timeball.cli.times import instant

    return instant(text, tz) if text else now()


def words(agenda: Agenda) -> str:
    """Return when it comes due, in words."""
    from timeball.core.cron import prose

    said = " and also ".join(map(prose, agenda.expressions))
    return f"{said}, but not on {', '.join(agenda.terms.exclude)}" if agenda.terms.exclude else said


def title(agenda: Agenda) -> str:
    """Return the expressions, their zone and the words for them."""
    written = " | ".join(each.canonical() for each in agenda.expressions)
    return f"{written}  in {agenda.zone.name}: {words(agenda)}"


def facts(agenda: Agenda) -> dict[str, Any]:
    """Return what a schedule is made of, for JSON."""
    import json

    return {
        "expression": agenda.terms.expression,
        "terms": json.loads(agenda.terms.to_json()),
        "tz": agenda.zone.name,
        "zone_data": agenda.zone.version,
        "gap": str(agenda.policy.gap),
        "overlap": str(agenda.policy.overlap),
    }
