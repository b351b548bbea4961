"""`timeball jobs`: look at jobs, follow them, cancel, move, snooze, revive and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli import added_parents, ended_jobs, moved_jobs, snoozed_jobs
from timeball.cli.database import dsn_option, opened
from timeball.cli.job_search import find
from timeball.cli.output import (
    iso,
    json_option,
    shown,
    utc_option,
    write,
    write_json,
    write_jsonl,
    write_table,
)

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client
    from timeball.core.records import CancelAnswer

_STATES: Final = (
    *("scheduled", "waiting", "pending", "running", "succeeded", "failed", "cancelled", "skipped"),
)
_PARTLY: Final = 8
_CODES: Final = {"not_found": 3, "finished": 4}
_ANSWERS: Final = {
    "cancelled": "cancelled; it will never start",
    "requested": "running; asked to stop, and no new attempt follows",
    "finished": "had ended before; nothing was changed",
    "not_found": "not found",
}


@click.group()
def command() -> None:
    """Look at jobs, follow them, cancel, move, snooze, revive and delete them."""


command.add_command(moved_jobs.move)
command.add_command(added_parents.add_parents)
command.add_command(snoozed_jobs.snooze)
command.add_command(ended_jobs.revive)
command.add_command(ended_jobs.delete)


@command.command("list")
@click.option("--state", type=click.Choice(_STATES), help="Only those in this state.")
@click.option("--queue", help="Only those of this queue.")
@click.option("--kind", help="Only those of this kind.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--before", type=int, metavar="NUMBER", help="Only those older than this job.")
@click.option("--jsonl", is_flag=True, help="Write one JSON object a line.")
@json_option
@utc_option
@dsn_option
def list_(**options: Any) -> None:
    """List jobs, newest first."""
    from timeball.cli.job_text import job_record, summary
    from timeball.core.states import State

    state = options["state"]
    with opened(options["dsn"]) as client:
        found = client.jobs(
            state=State(state) if state else None,
            queue=options["queue"],
            kind=options["kind"],
            limit=options["limit"],
            before_id=options["before"],
        )
    if options["jsonl"]:
        write_jsonl(map(job_record, found))
    elif options["as_json"]:
        write_json({"jobs": [job_record(job) for job in found]})
    else:
        utc = options["utc"]
        titles = ("number", "id", "kind", "queue", "state", "attempts", "created", "outcome")
        rows = [
            (
                *(job.id, job.uuid, job.kind, job.queue, job.state, job.attempts),
                *(shown(job.created_at, utc=utc), summary(job)),
            )
            for job in found
        ]
        write_table(titles, rows)


@command.command("show")
@click.argument("job_id", metavar="ID")
@json_option
@utc_option
@dsn_option
def show(job_id: str, *, as_json: bool, utc: bool, dsn: str | None) -> None:
    """Show one job. ID: its uuid, the beginning of it, or its number."""
    from timeball.cli.job_text import job_lines, job_record, log_lines, parent_lines

    with opened(dsn) as client:
        found = client.get(find(client, job_id).uuid)
        said = client.logs(found.uuid)
        parents = client.store.parents(found.id)
    if as_json:
        texts = [{"turn": line.turn, "at": iso(line.at), "text": line.text} for line in said]
        after = [{"job": one.uuid, "rule": one.rule, "state": one.state} for one in parents]
        write_json({"job": {**job_record(found), "after": after, "log": texts}})
        return
    head = [*job_lines(found, utc=utc), *parent_lines(parents), *(["log"] if said else [])]
    for line in head:
        write(line)
    for line in log_lines(said, utc=utc):
        write(f"    {line}")


@command.command("watch")
@click.argument("job_id", metavar="ID")
@utc_option
@dsn_option
@click.pass_context
def watch(ctx: click.Context, job_id: str, *, utc: bool, dsn: str | None) -> None:
    """Follow one job until it ends; the exit code is 0 if it succeeded and 1 if not.

    What it logs, and what a command writes once it has run for two seconds, is told as it comes.
    """
    from timeball.cli.following import followed
    from timeball.cli.job_text import ended_well, news_line

    with opened(dsn) as client:
        for job, line in followed(client, find(client, job_id)):
            write(news_line(job, line, utc=utc))
    ctx.exit(0 if ended_well(job) else 1)


@command.command("cancel")
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@dsn_option
@click.pass_context
def cancel(ctx: click.Context, job_ids: tuple[str, ...], *, dsn: str | None) -> None:
    """Keep jobs from starting, or ask those that run to stop."""
    codes = set()
    with opened(dsn) as client:
        for job_id in job_ids:
            answer = _cancel(client, job_id)
            write(f"{job_id}: {_ANSWERS[answer]}")
            codes.add(_CODES.get(answer, 0))
    ctx.exit(codes.pop() if len(codes) == 1 else _PARTLY)


def _cancel(client: Client, job_id: str) -> CancelAnswer:
    from timeball.core.records import CancelAnswer
    from timeball.errors import JobNotFound

    try:
        return client.cancel(find(client, job_id).uuid)
    except JobNotFound:
        return CancelAnswer.NOT_FOUND
