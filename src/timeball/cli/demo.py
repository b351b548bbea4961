"""`timeball demo`: see it work."""

from __future__ import annotations

import click

from timeball.cli.output import say


@click.command()
@click.option("--keep", is_flag=True, help="Use the embedded database and leave the jobs there.")
@click.pass_context
def command(ctx: click.Context, /, *, keep: bool) -> None:
    """Run 300 jobs and a schedule, kill a worker, and let the audit count.

    The exit code is 0 if nothing was lost and nothing ran twice.
    """
    say("Timeball: 300 jobs, a schedule, two workers, and one of them is killed on the way.")
    say("starting PostgreSQL …")
    from timeball.cli.demonstration import show

    ctx.exit(show(keep=keep))
