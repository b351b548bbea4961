"""`timeball batch`: batches of this process, run from a file, and those in the database."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import click

from timeball.cli.bounds import SLOTS_MAX
from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, say, write, write_json
from timeball.cli.stored_batches import COMMANDS, found
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from collections.abc import Sequence

    from timeball import AsyncScheduler, Rate, Scheduler
    from timeball.cli.batch_run import Run
    from timeball.core.batches import Member
    from timeball.core.report import BatchReport

_FAILED: Final = 1
_VIOLATED: Final = 7
_CONTRACT: Final = "write `def batch(scheduler): ...`, which submits its jobs"


@click.group()
def command() -> None:
    """Run many calls in this process, so many at a time and a second; draw how it went.

    And look after batches in the database: those that programs make with client.batch(...).
    """


for _stored in COMMANDS:
    command.add_command(_stored)


@command.command("run")
@click.argument("file", metavar="FILE.py")
@click.option("--workers", type=click.IntRange(1, SLOTS_MAX), default=8, show_default=True)
@click.option("--rate", metavar="RATE", help="The most starts, such as 50/s or '50/s spread'.")
@click.option(
    "--runner",
    type=click.Choice(["threads", "processes", "async"]),
    help="Where jobs run; else async if `batch` is, and threads if not.",
)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Keep it, for gantt.")
@json_option
@click.pass_context
def run(ctx: click.Context, /, file: str, **options: Any) -> None:
    """Run the batch that FILE.py defines, and print the report.

    FILE.py has one function that submits all jobs, `def batch(scheduler)`, whose scheduler is a
    timeball.Scheduler; or `async def batch(scheduler)`, whose scheduler is a
    timeball.AsyncScheduler, so that it writes `await scheduler.submit(...)`. It may wait for jobs;
    it need not.

    The exit code is 0 if all jobs succeeded, 1 if not, and 7 if the record breaks the contract.
    """
    from timeball.cli.batch_run import Run
    from timeball.core.rate import Rate
    from timeball.core.states import State

    rate = None if options["rate"] is None else Rate.parse(options["rate"])
    scheduler = _carried_out(file, options["workers"], rate, options["runner"])
    report, violations = scheduler.report(), scheduler.violations()
    save = options["save"]
    if save is not None:
        name = Path(file).name
        told = Run.of(report, scheduler.records(), name=name, rate=None if not rate else str(rate))
        save.write_text(told.text(), "utf-8")
    if options["as_json"]:
        write_json({**report.as_dict(), "violations": [each._asdict() for each in violations]})
    else:
        write(str(report))
    for violation in violations:
        say(str(violation))
    unsuccessful = report.jobs != report.states[State.SUCCEEDED]
    ctx.exit(_VIOLATED if violations else _FAILED if unsuccessful else 0)


@command.command("gantt")
@click.argument("which", metavar="SAVED|ID")
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Write it there."
)
@dsn_option
def gantt(which: str, *, svg: Path, dsn: str | None) -> None:
    """Draw a batch: slots, attempts, waits, makespan and bound.

    SAVED: a file that `run --save` has kept. ID: of a batch in the database: a uuid, the beginning
    of one, or a number; its slots are as many as were in use at once.
    """
    from timeball.cli.batch_run import Run
    from timeball.cli.gantt import gantt as drawn

    if Path(which).is_file():
        svg.write_text(drawn(Run.read(Path(which))), "utf-8")
        return
    with opened(dsn) as client:
        batch = found(client, which)
        name, members = batch.state().name or str(batch.uuid), batch.members()
        run = _stored_run(name, members, batch.report())
        svg.write_text(drawn(run), "utf-8")


def _stored_run(name: str, members: Sequence[Member], report: BatchReport) -> Run:
    """Return how a batch of the database was carried out."""
    from timeball.cli.batch_run import Run
    from timeball.core.batch_report import record_of
    from timeball.core.makespan import AttemptRecord

    kinds = {member.id: member.kind for member in members}
    records: list[AttemptRecord[int | str]] = [
        AttemptRecord(f"{kinds[each.job]} {each.job}", *each[1:])
        for each in record_of(members).attempts
    ]
    return Run.of(report, records, name=name, rate=None)


def _carried_out(
    file: str, workers: int, rate: Rate | None, runner: str | None
) -> Scheduler | AsyncScheduler:
    """Return the scheduler that has done all that the file's function has submitted."""
    import asyncio

    from timeball import AsyncScheduler, Scheduler

    batch = _batch_of(file)
    is_async = inspect.iscoroutinefunction(batch)
    if runner is not None and is_async != (runner == "async"):
        rewritten = "`def batch`" if is_async else "`async def batch`"
        raise UsageError(f"the batch of {file} is not for {runner}: write {rewritten} for that")
    if is_async:

        async def on_the_loop() -> AsyncScheduler:
            async with AsyncScheduler(workers, rate=rate) as s:
                await batch(s)
                await s.wait(progress=True)
            return s

        return asyncio.run(on_the_loop())
    where = cast("Literal['threads', 'processes']", runner or "threads")
    with Scheduler(workers, rate=rate, runner=where) as s:
        batch(s)
        s.wait(progress=True)
    return s


def _batch_of(file: str) -> Callable[..., Any]:
    from timeball.action.registry import DEFAULT

    path = Path(file)
    if path.suffix != ".py":
        raise UsageError(f"{file} is no Python file: name one that ends in .py")
    DEFAULT.load(str(path))
    batch = getattr(sys.modules[path.stem], "batch", None)
    if not callable(batch):
        raise UsageError(f"{file} defines no batch: {_CONTRACT}")
    return cast("Callable[..., Any]", batch)
