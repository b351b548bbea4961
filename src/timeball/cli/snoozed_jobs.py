"""`timeball jobs snooze`: put off jobs that have not begun."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import shown, utc_option, write
from timeball.errors import JobNotFound, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client

_PARTLY: Final = 8
_CODES: Final = {"not_found": 3, "finished": 4, "running": 4, "waiting": 4}
_ANSWERS: Final = {
    "waiting": "waits for other jobs and not for an instant; nothing was changed",
    "running": "a worker has it already; nothing was changed",
    "finished": "had ended before; nothing was changed",
    "not_found": "not found",
}


@click.command("snooze")
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@click.option("--until", metavar="INSTANT", help="Such as 2026-12-24T09:00+01:00.")
@click.option("--for", "lasting", metavar="DURATION", help="From now on, such as 90s or 2h.")
@utc_option
@dsn_option
@click.pass_context
def snooze(
    ctx: click.Context,
    /,
    *,
    job_ids: tuple[str, ...],
    until: str | None,
    lasting: str | None,
    utc: bool,
    dsn: str | None,
) -> None:
    """Let jobs that have not begun start at an instant at the earliest.

    Never sooner than they would have. They line up at the back then, and it costs no retry. ID: a
    uuid, the beginning of one, or a number.
    """
    from timeball.cli import times

    if (until is None) == (lasting is None):
        raise UsageError("snooze until when? write --until INSTANT or --for DURATION")
    at = times.instant(until) if until else None
    delay = timedelta(seconds=times.seconds(lasting)) if lasting else timedelta()
    codes = set()
    with opened(dsn) as client:
        for job_id in job_ids:
            code, told = _snooze(client, job_id, at or client.store.now() + delay, utc=utc)
            write(f"{job_id}: {told}")
            codes.add(code)
    ctx.exit(codes.pop() if len(codes) == 1 else _PARTLY)


def _snooze(client: Client, job_id: str, until: datetime, *, utc: bool) -> tuple[int, str]:
    """Put off one job; return the exit code and what to tell of it."""
    from timeball.cli.job_search import find

    try:
        uuid = find(client, job_id).uuid
        answer = client.snooze(uuid, until=until)
        if answer == "snoozed":
            run_at = client.get(uuid).run_at
            return 0, f"starts at {shown(run_at, utc=utc)} at the earliest"
    except JobNotFound:
        return _CODES["not_found"], _ANSWERS["not_found"]
    return _CODES[answer], _ANSWERS[answer]
