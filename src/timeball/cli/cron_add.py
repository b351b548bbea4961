"""`timeball cron add`: declare a schedule in the database."""

from __future__ import annotations

from typing import Any, Final

import click

from timeball.cli.cron_terms import given_terms, rule_options
from timeball.cli.database import dsn_option, opened
from timeball.cli.named_args import named_args
from timeball.cli.output import say, write

_DECLARED: Final = ("queue", "priority", "key", "max_retries", "catchup", "overlap_runs")


@click.command("add")
@click.argument("name")
@click.option("--cron", "expression", metavar="EXPR", required=True, help="As `cron next` takes.")
@rule_options
@click.option("--max-runs", type=click.IntRange(1), help="It ends after so many runs.")
@click.option(
    "--catchup",
    type=click.Choice(["last", "none", "all"]),
    help="Which missed ones run: the latest, none, all.",
)
@click.option(
    "--overlap-runs",
    type=click.Choice(["skip", "queue_one", "allow", "replace"]),
    help="What happens while the run before has not ended.",
)
@click.option("--queue", help="Where its jobs line up.")
@click.option("--priority", type=int, help="0 to 9; 9 starts first.")
@click.option("--key", help="Of its jobs, so that a limit on the key holds for them.")
@click.option("--max-retries", type=int, help="Attempts after one that failed.")
@click.argument("kind")
@click.argument("words", metavar="key=value…", nargs=-1)
@dsn_option
def add(name: str, *, expression: str, kind: str, words: tuple[str, ...], **options: Any) -> None:
    """Add a schedule that submits jobs of KIND, or change the one called NAME.

    Each value is JSON if it reads as JSON, else text. What runs for KIND is up to the program of
    the workers; commands stand in a crontab or a schedules.toml, for `timeball up`.
    """
    from timeball.chance import system_zone
    from timeball.cli.outlook import surprises
    from timeball.client.specs import agenda_of, no_path

    no_path(kind)
    tz = options["tz"] or system_zone()
    chosen = {key: options[key] for key in (*_DECLARED, "dst", "gap", "overlap", "max_runs")}
    chosen |= given_terms(options, tz)
    given = {key: value for key, value in chosen.items() if value is not None}
    args = named_args(words)
    with opened(options["dsn"]) as client:
        client.schedule(name, kind, cron=expression, tz=tz, args=args, **given)
        schedule = client.get_schedule(name)
    write(f"{name}: {schedule.spec.expression} in {tz}, {schedule.state}")
    for text in surprises(agenda_of(schedule.spec), schedule.cursor):
        say(text)
    say(f"look at it: timeball cron show {name}")
