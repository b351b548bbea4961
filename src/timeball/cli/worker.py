"""`timeball worker`: run workers for the jobs of some modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from timeball.cli.bounds import CHILDREN_MAX, LEASE_MIN_S, POLL_MIN_S, SLOTS_MAX
from timeball.cli.database import dsn_option
from timeball.cli.monitoring import log_format_option, metrics_option, say_url

if TYPE_CHECKING:
    from timeball.worker.config import WorkerConfig


@click.command()
@click.option(
    "-a",
    "--app",
    "apps",
    multiple=True,
    required=True,
    metavar="MODULE|FILE",
    help="Where the jobs are defined; may be given several times.",
)
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    default=("default",),
    show_default=True,
    help="Which queues to serve; may be given several times.",
)
@click.option(
    "--threads",
    "--async",
    "slots",
    type=click.IntRange(1, SLOTS_MAX),
    default=8,
    show_default=True,
    metavar="N",
    help="Jobs that may run at once in each process; coroutines share its event loop.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, SLOTS_MAX),
    metavar="N",
    help="In place of --threads: plain functions run in processes apart, which a timeout or a "
    "cancel kills.",
)
@click.option(
    "--grace",
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="From SIGTERM to SIGKILL for a process apart.",
)
@click.option(
    "--children",
    type=click.IntRange(1, CHILDREN_MAX),
    default=1,
    show_default=True,
    help="Processes.",
)
@click.option(
    "--drain",
    default="25s",
    show_default=True,
    metavar="DURATION",
    help="How long a stop waits for jobs that run.",
)
@click.option(
    "--lease",
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long a process may be silent before its jobs go to others.",
)
@click.option(
    "--poll",
    default="1s",
    show_default=True,
    metavar="DURATION",
    help="The longest rest without looking for jobs.",
)
@click.option(
    "--aging",
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How much waiting one priority class is worth.",
)
@click.option(
    "--keep",
    default="7d",
    show_default=True,
    metavar="DURATION|ever",
    help="How long jobs are kept that have succeeded.",
)
@click.option(
    "--keep-failed",
    default="30d",
    show_default=True,
    metavar="DURATION|ever",
    help="How long jobs are kept that have ended otherwise.",
)
@metrics_option
@log_format_option
@dsn_option
@click.pass_context
def command(ctx: click.Context, /, apps: tuple[str, ...], **options: Any) -> None:
    """Run jobs until SIGTERM or Ctrl-C, which lets running jobs end; a second one does not."""
    from timeball.cli.output import say
    from timeball.client.connect import open_store
    from timeball.core.upkeep import Keep
    from timeball.observe.endpoint import address
    from timeball.observe.transitions import LogFormat, configure
    from timeball.worker.child import Load
    from timeball.worker.supervisor import Supervisor, SupervisorConfig

    worker = _worker(ctx, options)
    metrics, log = options["metrics"] and address(options["metrics"]), options["log_format"]
    configure(LogFormat(log))
    store, close = open_store(options["dsn"])
    try:
        config = SupervisorConfig(
            dsn=store.connections.dsn,
            loads=tuple(Load(target=app) for app in apps),
            worker=worker,
            children=options["children"],
            keep=Keep(_kept_s(options["keep"]), _kept_s(options["keep_failed"])),
            metrics=metrics,
            log=LogFormat(log),
        )
        supervisor = Supervisor(config)
        say(f"{config.children} process(es) of {worker.slots} slots; Ctrl-C stops")
        say_url(supervisor.metrics_url)
        ctx.exit(supervisor.run())
    finally:
        close()


def _worker(ctx: click.Context, options: dict[str, Any]) -> WorkerConfig:
    import os

    from timeball.cli.times import seconds
    from timeball.worker.config import WorkerConfig

    given = ctx.get_parameter_source("slots")
    if options["processes"] and given is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("both say how many jobs run at once: write --threads or --processes")
    return WorkerConfig(
        name=f"worker-{os.getpid()}",
        queues=options["queues"],
        slots=options["processes"] or options["slots"],
        drain_s=seconds(options["drain"]),
        lease_s=seconds(options["lease"], least_s=LEASE_MIN_S),
        poll_s=seconds(options["poll"], least_s=POLL_MIN_S),
        aging_s=seconds(options["aging"]),
        runner="process" if options["processes"] else "thread",
        grace_s=seconds(options["grace"]),
    )


def _kept_s(text: str) -> float | None:
    from timeball.cli.times import seconds

    return None if text == "ever" else seconds(text)
