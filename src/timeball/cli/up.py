"""`timeball up`: the schedules of files of any format, with all that it takes to run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.bounds import CHILDREN_MAX, SLOTS_MAX
from timeball.cli.database import dsn_option
from timeball.cli.monitoring import log_format_option, metrics_option, results_option, web_option
from timeball.cli.output import json_option, say, utc_option, write_json
from timeball.cli.schedule_file import form_option
from timeball.importers.wording import counted

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.cli.declared import Reading

_FAULTY: Final = 2


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Only read and show; needs no database.")
@click.option("--keep-going", is_flag=True, help="Run the good lines although others are bad.")
@click.option(
    "--slots",
    type=click.IntRange(1, SLOTS_MAX),
    default=8,
    show_default=True,
    help="Jobs that may run at once in each worker process.",
)
@click.option(
    "--children",
    type=click.IntRange(1, CHILDREN_MAX),
    default=1,
    show_default=True,
    help="Worker processes.",
)
@form_option
@click.option(
    "--format",
    "origin",
    type=click.Choice(["crontab", "celery", "apscheduler", "kubernetes", "toml", "python"]),
    help="Format of all FILEs; else by name and content.",
)
@click.option("--tz", help="Zone of what names none; else this machine's.")
@metrics_option
@web_option
@results_option
@log_format_option
@utc_option
@json_option
@dsn_option
@click.pass_context
def command(ctx: click.Context, /, files: tuple[str, ...], **options: Any) -> None:
    """Run what FILEs declare: crontabs, a schedules.toml, Python files and modules.

    Files of Celery beat, APScheduler and Kubernetes are read as `timeball import` reads them, and
    never run; Python files with @tb.job and @tb.cron are imported.

    Everything is read first. If anything is wrong or needs you, all of it is told and nothing
    starts.
    """
    from timeball.chance import system_zone
    from timeball.cli.declared import Asked, read

    tz = options["tz"] or system_zone()
    asked = Asked(
        form=options["form"],
        tz=tz,
        tz_given=options["tz"] is not None,
        origin=options["origin"],
        dry_run=options["dry_run"],
    )
    reading = read(files, asked)
    _show(reading, tz, utc=options["utc"], as_json=options["as_json"])
    for fault in reading.faults:
        say(str(fault))
    if reading.faults and not options["keep_going"]:
        say(f"{counted(len(reading.faults), 'problem')}: nothing was started")
        ctx.exit(_FAULTY)
    if options["dry_run"]:
        return
    if not reading.schedules and not reading.loads:
        say("there is nothing to run")
        ctx.exit(_FAULTY)
    from timeball.cli.running import Running, run
    from timeball.observe.endpoint import address
    from timeball.observe.transitions import LogFormat

    how = Running(
        dsn=options["dsn"],
        slots=options["slots"],
        children=options["children"],
        utc=options["utc"],
        metrics=options["metrics"] and address(options["metrics"]),
        web=options["web"] and address(options["web"]),
        results=options["results"],
        log=LogFormat(options["log_format"]),
    )
    ctx.exit(run(reading, how))


def _show(reading: Reading, tz: str, *, utc: bool, as_json: bool) -> None:
    from timeball.chance import now
    from timeball.cli.outlook import outlook, record, write_outlooks
    from timeball.core.cron import zone_version

    after = now()
    outlooks = [outlook(each, after) for each in reading.schedules]
    if as_json:
        write_json(
            {
                "default_tz": tz,
                "zone_data": zone_version(),
                "schedules": [record(each) for each in outlooks],
                "problems": [fault._asdict() for fault in reading.faults],
            }
        )
        return
    write_outlooks(outlooks, utc=utc)
    say(f"lines that name no zone are in {tz}; zone data {zone_version()}")
