"""`timeball cron`: when schedules run, and why then."""

from __future__ import annotations

import click

from timeball.cli import cron_changes
from timeball.cli.cron_add import add
from timeball.cli.cron_calendar import calendar
from timeball.cli.cron_lint import lint
from timeball.cli.cron_stored import list_, show
from timeball.cli.cron_times import explain, next_


@click.group()
def command() -> None:
    """Say when schedules run, and why then; add them and look after them."""


for _command in (
    *(next_, explain, calendar, lint),
    *(list_, show, add, cron_changes.pause, cron_changes.resume, cron_changes.run),
    *(cron_changes.backfill, cron_changes.remove),
):
    command.add_command(_command)
