"""`timeball jobs move`: let jobs that have not begun wait in another lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import write
from timeball.errors import JobNotFound, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client

_PARTLY: Final = 8
_CODES: Final = {"not_found": 3, "finished": 4, "running": 4}
_ANSWERS: Final = {
    "running": "a worker has it already; nothing was changed",
    "finished": "had ended before; nothing was changed",
    "not_found": "not found",
}


@click.command("move")
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@click.option("--queue", help="Where they are to wait; else in the queue in which they are.")
@click.option("--priority", type=click.IntRange(0, 9), help="9 starts first; else as they have.")
@dsn_option
@click.pass_context
def move(
    ctx: click.Context,
    /,
    *,
    job_ids: tuple[str, ...],
    queue: str | None,
    priority: int | None,
    dsn: str | None,
) -> None:
    """Let jobs that have not begun wait in another queue, with another priority, or both.

    They go to the back there; a queue that is paused or full takes them too. ID: a uuid, the
    beginning of one, or a number.
    """
    if queue is None and priority is None:
        raise UsageError("move where to? write --queue, --priority, or both")
    codes = set()
    with opened(dsn) as client:
        for job_id in job_ids:
            code, told = _move(client, job_id, queue, priority)
            write(f"{job_id}: {told}")
            codes.add(code)
    ctx.exit(codes.pop() if len(codes) == 1 else _PARTLY)


def _move(client: Client, job_id: str, queue: str | None, priority: int | None) -> tuple[int, str]:
    """Move one job; return the exit code and what to tell of it."""
    from timeball.cli.job_search import find

    try:
        uuid = find(client, job_id).uuid
        answer = client.move(uuid, queue=queue, priority=priority)
        if answer == "moved":
            job = client.get(uuid)
            paused = {each.name for each in client.queues() if each.paused_at is not None}
            note = "; that queue is paused" if job.queue in paused else ""
            return 0, f"moved to queue {job.queue}, priority {job.priority}{note}"
    except JobNotFound:
        return _CODES["not_found"], _ANSWERS["not_found"]
    return _CODES[answer], _ANSWERS[answer]
