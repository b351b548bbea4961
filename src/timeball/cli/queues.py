"""`timeball queues`: what waits where, and pausing queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, shown, utc_option, write, write_json, write_table
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.queues import Queue


@click.group()
def command() -> None:
    """Look at queues, pause and resume them, and limit them."""


@command.command("list")
@json_option
@utc_option
@dsn_option
def list_(*, as_json: bool, utc: bool, dsn: str | None) -> None:
    """List queues with what waits and runs in them. Counting ends at 10,000, or earlier."""
    with opened(dsn) as client:
        found = client.queues()
    if as_json:
        write_json({"queues": [queue._asdict() for queue in found]})
        return
    titles = (
        *("name", "pending", "held", "running", "oldest", "at once", "max depth"),
        *("paused since", "by"),
    )
    write_table(titles, [_cells(queue, utc=utc) for queue in found])


@command.command("pause")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option("--by", help="Who does it, for the list; else this user and machine.")
@dsn_option
def pause(names: tuple[str, ...], *, by: str | None, dsn: str | None) -> None:
    """Let no job of a queue start any more. What runs goes on; jobs may still be submitted."""
    with opened(dsn) as client:
        for name in names:
            new = client.pause_queue(name, by=by)
            write(f"{name}: {'paused' if new else 'was paused before'}; nothing starts there")


@command.command("resume")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@dsn_option
def resume(names: tuple[str, ...], *, dsn: str | None) -> None:
    """Let jobs of paused queues start again."""
    with opened(dsn) as client:
        for name in names:
            write(f"{name}: {'resumed' if client.resume_queue(name) else 'was not paused'}")


@command.command("set")
@click.argument("name")
@click.option("--max-depth", metavar="N|none", help="Refuse what is submitted beyond so many.")
@click.option("--at-once", metavar="N|none", help="Let so many run at once, over all workers.")
@dsn_option
def set_(*, name: str, max_depth: str | None, at_once: str | None, dsn: str | None) -> None:
    """Limit a queue; none takes the limit away."""
    if max_depth is None and at_once is None:
        raise UsageError("write --max-depth, --at-once, or both")
    with opened(dsn) as client:
        if max_depth is not None:
            client.limit_depth(name, _number(max_depth, "--max-depth"))
        if at_once is not None:
            client.limit(queue=name, at_once=_number(at_once, "--at-once"))
    write("from now on")


def _number(text: str, option: str) -> int | None:
    if text != "none" and not text.isdecimal():
        raise click.BadParameter(f"{text!r}: write a number, or none", param_hint=option)
    return None if text == "none" else int(text)


def _cells(queue: Queue, *, utc: bool) -> tuple[Any, ...]:
    counts = (queue.pending, queue.held, queue.running)
    return (
        queue.name,
        *(f"{count:,}{'+' if count == queue.counted_to else ''}" for count in counts),
        "" if queue.oldest_s is None else f"{max(0.0, queue.oldest_s):,.0f} s",
        *("" if limit is None else f"{limit:,}" for limit in (queue.at_once, queue.max_depth)),
        shown(queue.paused_at, utc=utc),
        queue.paused_by or "",
    )
