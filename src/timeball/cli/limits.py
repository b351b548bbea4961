"""`timeball limits`: how many jobs of a key or a queue may be under way at once."""

from __future__ import annotations

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, write, write_json, write_table


@click.group()
def command() -> None:
    """Say how many jobs of a key or a queue may be under way at once, over all workers."""


@command.command("list")
@json_option
@dsn_option
def list_(*, as_json: bool, dsn: str | None) -> None:
    """List the limits that were set, and how many jobs count against each."""
    with opened(dsn) as client:
        found = client.limits()
    if as_json:
        write_json({"limits": [limit._asdict() for limit in found]})
    else:
        write_table(("what", "name", "at once", "used"), found)


@command.command("set")
@click.option("--key", help="Jobs with this key; tenant-* is for each key that begins so.")
@click.option("--queue", help="Jobs in this queue.")
@click.argument("at_once", metavar="N|none")
@dsn_option
def set_(*, at_once: str, key: str | None, queue: str | None, dsn: str | None) -> None:
    """Let at most N jobs be under way at once; none: a queue has no limit, a key has 1."""
    if at_once != "none" and not at_once.isdecimal():
        raise click.BadParameter(f"{at_once!r}: write a number, or none", param_hint="N")
    number = None if at_once == "none" else int(at_once)
    with opened(dsn) as client:
        client.limit(at_once=number, key=key, queue=queue)
    write("from now on")
