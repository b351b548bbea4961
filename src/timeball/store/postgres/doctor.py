"""What a doctor looks at in a database. Nothing of it is changed."""

from __future__ import annotations

import re
from typing import Any, Final

from timeball.chance import now
from timeball.core.cron.zonedata import zone_version
from timeball.core.diagnosis import Facts, Holder, Server, Standing, Stuck, Table
from timeball.errors import SchemaMismatch
from timeball.store.postgres.connections import Connections, Run
from timeball.store.postgres.migrate import check, migrations

_ROWS_MAX: Final = 1_000
_JOBS_MAX: Final = 10_000
_INDEX: Final = re.compile(
    r"^CREATE (?:UNIQUE )?INDEX (?:CONCURRENTLY )?(?:IF NOT EXISTS )?(\w+)", re.MULTILINE
)


def examine(connections: Connections) -> Facts:
    """Return what there is to be diagnosed.

    Raises:
        StoreUnavailable: The database does not answer, or took too long.
    """
    mismatch = ""
    try:
        check(connections)
    except SchemaMismatch as error:
        mismatch = str(error)
    with connections.borrowed() as connection:
        told = connection.info.backend_pid
    return facts_of(connections.run, connections.schema, mismatch=mismatch, told_pid=told)


def facts_of(run: Run, schema: str, *, mismatch: str, told_pid: int) -> Facts:
    """Return what a way to run statements leads to; of a schema that does not fit, nothing.

    Args:
        run: Runs statements.
        schema: What the schema is called.
        mismatch: Why the schema does not fit; empty where it does.
        told_pid: The server's process, as whoever answered has told; a proxy tells another.
    """
    *server, pid = run("doctor_server")[0]
    skew_s, skew_error_s = _skew(run)
    return Facts(
        server=Server(*server),
        skew_s=skew_s,
        skew_error_s=skew_error_s,
        schema=schema,
        mismatch=mismatch,
        proxied=pid != told_pid,
        zone_version=zone_version(),
        holders=[Holder(*row) for row in run("doctor_sessions", most=_ROWS_MAX)],
        **({} if mismatch else _inside(run)),
    )


def _inside(run: Run) -> dict[str, Any]:
    whole: dict[str, bool] = dict(run("doctor_indexes"))
    return {
        "lacking": sorted(_expected() - set(whole)),
        "unfinished": sorted(name for name, fine in whole.items() if not fine),
        "tables": [Table(*row) for row in run("doctor_tables", most=_ROWS_MAX)],
        "kinds": [(kind, jobs) for kind, jobs in run("doctor_kinds", most=_JOBS_MAX)],
        "stuck": [Stuck(*row) for row in run("doctor_workers", most=_ROWS_MAX)],
        "schedules": [Standing(*row) for row in run("doctor_schedules", most=_ROWS_MAX)],
    }


def _expected() -> set[str]:
    """Return the indexes that the numbered files make."""
    files = [each.text for each in migrations() if not each.repeatable]
    return {name for text in files for name in _INDEX.findall(text)}


def _skew(run: Run) -> tuple[float, float]:
    """Return how far the server's clock is ahead, and by how much that may be wrong."""
    before = now().timestamp()
    ((server,),) = run("doctor_clock")
    after = now().timestamp()
    return server - (before + after) / 2, (after - before) / 2
