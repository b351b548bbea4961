"""`timeball cron pause|resume|run|backfill|remove`: what is done to schedules of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import iso, json_option, say, write, write_json
from timeball.errors import ScheduleNotFound, UsageError
from timeball.importers.wording import counted

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client
    from timeball.core.records import Schedule

_Command = TypeVar("_Command", bound=Callable[..., Any])
_NOT_FOUND: Final = 3
_FORBIDDEN: Final = 4
_PARTLY: Final = 8
_LISTED: Final = 5


def _choice(command: _Command) -> _Command:
    """Add which schedules a command is about."""
    for option in (
        dsn_option,
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--source", help="Those that this file or program declared."),
        click.option("--all", "everything", is_flag=True, help="Every schedule."),
        click.argument("names", metavar="NAME…", nargs=-1),
    ):
        command = option(command)
    return command


@click.command("pause")
@_choice
@click.pass_context
def pause(ctx: click.Context, /, dsn: str | None, **chosen: Any) -> None:
    """Keep schedules from firing until they are resumed; jobs that exist go on."""
    with opened(dsn) as client:

        def one(schedule: Schedule) -> str | None:
            if schedule.state == "paused":
                return None
            client.pause_schedule(schedule.spec.name)
            return "paused"

        ctx.exit(_each(client, "pause", one, otherwise="was paused before", chosen=chosen))


@click.command("resume")
@click.option("--backfill", is_flag=True, help="Run what came during the pause, each of them.")
@_choice
@click.pass_context
def resume(ctx: click.Context, /, dsn: str | None, *, backfill: bool, **chosen: Any) -> None:
    """Let schedules go on that were paused or are in error.

    What came during the pause is dropped, with a row in the history that says so, unless
    --backfill is given.
    """
    with opened(dsn) as client:

        def one(schedule: Schedule) -> str | None:
            if schedule.state == "active":
                return None
            client.resume_schedule(schedule.spec.name, backfill=backfill)
            return "active"

        ctx.exit(_each(client, "resume", one, otherwise="was not paused", chosen=chosen))


@click.command("remove")
@_choice
@click.pass_context
def remove(ctx: click.Context, /, dsn: str | None, **chosen: Any) -> None:
    """Retire schedules. Their history stays; a file that declares one brings it back."""
    with opened(dsn) as client:

        def one(schedule: Schedule) -> str | None:
            client.remove_schedule(schedule.spec.name)
            source = schedule.spec.source
            return "removed" + (f"; {source} declares it and brings it back" if source else "")

        ctx.exit(_each(client, "remove", one, otherwise="", chosen=chosen))


@click.command("run")
@click.argument("name")
@dsn_option
def run(name: str, *, dsn: str | None) -> None:
    """Add one extra job of a schedule now, and print its id. Its occurrences stay as they are."""
    with opened(dsn) as client:
        write(str(client.run_schedule(name).uuid))


@click.command("backfill")
@click.argument("name")
@click.option("--from", "start", metavar="INSTANT", required=True, help="The first; included.")
@click.option("--to", "end", metavar="INSTANT", help="The last, included; else now.")
@click.option("--dry-run", is_flag=True, help="Only say what would run.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@dsn_option
@json_option
def backfill(name: str, *, start: str, end: str | None, **options: Any) -> None:
    """Run the past occurrences of a schedule that have not run.

    The same call twice does no harm: what has run does not run again. Instants without a zone are
    in the schedule's own.
    """
    from timeball.cli.times import instant

    with opened(options["dsn"]) as client:
        tz = client.get_schedule(name).spec.tz
        first = instant(start, tz)
        last = instant(end, tz) if end else client.store.now()
        found = client.backfill(name, first, last, dry_run=True)
        if found.fired and not options["dry_run"]:
            ask(f"run {counted(len(found.fired), 'occurrence')} of {name}", yes=options["yes"])
            found = client.backfill(name, first, last)
    if options["as_json"]:
        write_json(
            {
                "name": name,
                "dry_run": found.dry_run,
                "fired": [iso(each) for each in found.fired],
                "already": [iso(each) for each in found.already],
            }
        )
        return
    for each in found.fired:
        write(iso(each))
    verb = "would run" if options["dry_run"] else "run"
    say(f"{counted(len(found.fired), 'occurrence')} {verb}; {len(found.already)} had run before")


def _each(
    client: Client,
    verb: str,
    one: Callable[[Schedule], str | None],
    *,
    otherwise: str,
    chosen: Mapping[str, Any],
) -> int:
    """Do something to the chosen schedules; return the exit code."""
    names, source = chosen["names"], chosen["source"]
    if [bool(names), chosen["everything"], source is not None].count(True) != 1:
        raise UsageError(f"say what to {verb}: write names, --source SOURCE or --all")
    if not names:
        held = client.schedules()
        names = [each.spec.name for each in held if source in {None, each.spec.source}]
        if not names:
            say("there is no such schedule: nothing was changed")
            return 0
        listed = ", ".join(names[:_LISTED]) + (" …" if names[_LISTED:] else "")
        ask(f"{verb} {counted(len(names), 'schedule')} ({listed})", yes=chosen["yes"])
    codes = {_done(client, name, one, otherwise) for name in names}
    return codes.pop() if len(codes) == 1 else _PARTLY


def _done(client: Client, name: str, one: Callable[[Schedule], str | None], otherwise: str) -> int:
    try:
        answer = one(client.get_schedule(name))
    except ScheduleNotFound as error:
        say(f"timeball: {error}")
        return _NOT_FOUND
    write(f"{name}: {answer or f'{otherwise}; nothing was changed'}")
    return 0 if answer else _FORBIDDEN


def ask(what: str, *, yes: bool) -> None:
    """Return if the person says so, or has said so beforehand.

    Raises:
        UsageError: Nobody is there to ask.
        Exit: The answer was no.
    """
    if yes:
        return
    try:
        wanted = click.confirm(f"{what}?", err=True)
    except click.Abort:
        raise UsageError(f"nothing was done: to {what} without being asked, write --yes") from None
    if not wanted:
        say("nothing was done")
        raise click.exceptions.Exit(1)
