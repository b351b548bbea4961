"""`timeball jobs add-parents`: have a job that waits for others wait for more of them."""

from __future__ import annotations

from typing import Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import write
from timeball.errors import JobNotFound

_RULES: Final = (
    *("all_success", "all_done", "none_failed", "always", "one_success", "one_failed"),
)
_TOLD: Final = {
    "added": (0, "waits for {} too"),
    "refused": (4, "waits for no parent, or has begun or ended before; nothing was changed"),
    "not_found": (3, "not found"),
}


@click.command("add-parents")
@click.argument("job_id", metavar="ID")
@click.argument("parents", metavar="PARENT…", nargs=-1, required=True)
@click.option("--rule", type=click.Choice(_RULES), default="all_success", show_default=True)
@dsn_option
@click.pass_context
def add_parents(
    ctx: click.Context,
    /,
    *,
    job_id: str,
    parents: tuple[str, ...],
    rule: str,
    dsn: str | None,
) -> None:
    """Have a job that waits for others come after more of them: after all of these, or none.

    It was submitted with --after, and waits for that still. What waits for the job itself is
    refused. ID, PARENT: a uuid, the beginning of one, or a number.
    """
    from timeball.cli.job_search import find

    missing = job_id
    with opened(dsn) as client:
        try:
            child = find(client, job_id).uuid
            after = []
            for missing in parents:
                after.append(find(client, missing).uuid)
        except JobNotFound:
            code, told = _TOLD["not_found"]
            write(f"{missing}: {told}; nothing was changed")
            ctx.exit(code)
        code, told = _TOLD[client.add_edges(child, after, rule=rule)]
    write(f"{job_id}: {told.format(', '.join(parents))}")
    ctx.exit(code)
