"""`timeball doctor`: what is wrong with a database, and the commands that mend it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from timeball.cli.database import dsn_option, given_dsn, opened
from timeball.cli.output import clean, json_option, write, write_json

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.diagnosis import Facts, Finding

_TROUBLE: Final = 1
_WIDE: Final = 9


@click.command()
@json_option
@dsn_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool, dsn: str | None) -> None:
    """Say what is wrong with the database, and what mends it. Nothing is changed.

    The exit code is 1 if there is trouble, and 0 for warnings and notes.
    """
    from timeball.core.diagnosis import Severity, diagnosed

    found = diagnosed(_facts(dsn))
    if as_json:
        write_json({"findings": [finding._asdict() for finding in found]})
    else:
        write("\n".join(map(_said, found)))
    ctx.exit(_TROUBLE if any(one.severity is Severity.TROUBLE for one in found) else 0)


def _facts(dsn: str | None) -> Facts:
    from timeball.store.postgres import PostgresStore
    from timeball.store.postgres.doctor import examine
    from timeball.store.postgres.reading import ReadingConnections

    given = given_dsn(dsn)
    if given is None:
        with opened(None) as client:
            assert isinstance(client.store, PostgresStore)
            return examine(client.store.connections)
    with closing(ReadingConnections(given)) as connections:
        return examine(connections)


def _said(finding: Finding) -> str:
    mend = f"\n{'':{_WIDE}}{clean(finding.mend)}" if finding.mend else ""
    return f"{finding.severity:{_WIDE}}{finding.check}: {clean(finding.evidence)}{mend}"
