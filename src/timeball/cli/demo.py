"""`timeball demo`: see it work."""

from __future__ import annotations

import click

from timeball.cli.output import say


@click.command()
@click.option("--keep", is_flag=True, help="Use the embedded database and leave the jobs there.")
@click.option("--web", is_flag=True, help="Run another story until Ctrl-C, with the dashboard.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8642,
    show_default=True,
    help="Of the dashboard; 0 takes any that is free.",
)
@click.pass_context
def command(ctx: click.Context, /, *, keep: bool, web: bool, port: int) -> None:
    """Run 300 jobs and a schedule, kill a worker, and let the audit count.

    The exit code is 0 if nothing was lost and nothing ran twice.
    """
    if web:
        from timeball.cli import demo_web

        say("starting PostgreSQL …")
        ctx.exit(demo_web.show(port, keep=keep))
    say("Timeball: 300 jobs, a schedule, two workers, and one of them is killed on the way.")
    say("starting PostgreSQL …")
    from timeball.cli.demonstration import show

    ctx.exit(show(keep=keep))
