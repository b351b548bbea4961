"""`timeball jobs revive` and `delete`: for jobs that have ended, by their ids or by a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import write
from timeball.errors import JobNotFound, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PARTLY: Final = 8
_CODES: Final = {"not_found": 3, "refused": 4, "clashed": 4}
_REVIVABLE: Final = ("failed", "cancelled", "skipped")
_ENDED: Final = ("succeeded", *_REVIVABLE)


def _which(states: tuple[str, ...]) -> Callable[[_Command], _Command]:
    """Add the ways to say which jobs are meant."""
    options = (
        click.argument("job_ids", metavar="[ID…]", nargs=-1),
        click.option("--state", type=click.Choice(states), help="All in this state."),
        click.option("--queue", help="All of this queue."),
        click.option("--kind", help="All of this kind."),
        click.option("--all", "every", is_flag=True, help="All of them."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        dsn_option,
        click.pass_context,
    )

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command("revive")
@_which(_REVIVABLE)
def revive(ctx: click.Context, /, **options: Any) -> None:
    """Start failed, cancelled and skipped jobs again: at once, with all their retries.

    ID: a uuid, the beginning of one, or a number; or say which ones by their state, queue
    and kind.
    """
    told = {
        "revived": "revived",
        "refused": "has not ended, or has succeeded; nothing was changed",
        "clashed": "another job holds its unique key; nothing was changed",
        "not_found": "not found",
    }
    with opened(options["dsn"]) as client:
        if options["job_ids"]:
            ctx.exit(_each(client, client.revive_many, told, options))
        _all(client, client.revive_many, _REVIVABLE, options)


@click.command("delete")
@_which(_ENDED)
def delete(ctx: click.Context, /, **options: Any) -> None:
    """Delete jobs that have ended, with their history.

    ID: a uuid, the beginning of one, or a number; or say which ones by their state, queue
    and kind. Workers delete old ones by themselves: see `timeball worker --keep`.
    """
    told = {
        "deleted": "deleted",
        "refused": "has not ended: cancel it first; nothing was changed",
        "not_found": "not found",
    }
    with opened(options["dsn"]) as client:
        if options["job_ids"]:
            ctx.exit(_each(client, client.delete_many, told, options))
        _all(client, client.delete_many, _ENDED, options)


def _each(
    client: Client, change: Callable[..., Any], told: dict[str, str], options: dict[str, Any]
) -> int:
    """Change the jobs that are named, tell of each, and return the exit code."""
    from timeball.cli.job_search import find

    if any(options[name] for name in ("state", "queue", "kind", "every")):
        raise UsageError("write ids, or say which ones by --state, --queue, --kind; not both")
    codes = set()
    for job_id in options["job_ids"]:
        try:
            (answer,) = change([find(client, job_id).uuid])
        except JobNotFound:
            answer = "not_found"
        write(f"{job_id}: {told[answer]}")
        codes.add(_CODES.get(answer, 0))
    return codes.pop() if len(codes) == 1 else _PARTLY


def _all(
    client: Client, change: Callable[..., Any], states: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Change all jobs that the filter lets through, once the person has seen how many."""
    from timeball.cli.job_search import matching
    from timeball.core.states import State

    only = {name: options[name] for name in ("queue", "kind") if options[name]}
    if not only and not options["state"] and not options["every"]:
        raise UsageError("which ones? write ids, --state, --queue, --kind, or --all")
    chosen = (options["state"],) if options["state"] else states
    uuids: list[UUID] = matching(client, tuple(State(state) for state in chosen), **only)
    word = click.get_current_context().info_name
    if uuids and not options["yes"]:
        click.confirm(f"{word} {len(uuids):,} jobs?", abort=True, err=True)
    answers = Counter(change(uuids))
    write(", ".join(f"{count:,} {answer}" for answer, count in answers.items()) or "none found")
