"""Procrastinate, as its documentation has it: PsycopgConnector, one worker a process.

What a dead worker leaves is found by `get_stalled_jobs` and given to `retry_job`, from a periodic
task, as its how-to on stalled jobs shows; only the times are shorter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import procrastinate  # type: ignore[import-not-found]  # has an environment of its own

if TYPE_CHECKING:
    from timeball.certify.peers.adapters import bodies
else:
    import bodies

DISTRIBUTION: Final = "procrastinate"
_STATES: Final = {"todo": "waiting", "doing": "running"}
_ONE: Final = "one at once"


def _app(terms: bodies.Terms) -> Any:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=terms.dsn))
    app.task(name="probe")(bodies.carry_out)

    async def rescue(timestamp: int) -> None:  # noqa: ARG001 - periodic tasks are given one
        found = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=terms.silent_s)
        for job in found:
            await app.job_manager.retry_job(job)

    periodic = app.task(name="rescue", queueing_lock="rescue", queue="rescue")(rescue)
    app.periodic(cron=f"* * * * * */{terms.beat_s}")(periodic)
    return app


async def prepare(terms: bodies.Terms) -> None:
    """Apply its schema."""
    async with _app(terms).open_async() as app:
        await app.schema_manager.apply_schema_async()


class _Client:
    def __init__(self, app: Any, terms: bodies.Terms) -> None:
        self._app = app
        self._lock = _ONE if terms.alone else None

    async def submit(self, tags: list[str], what: str) -> list[str]:
        probe = self._app.configure_task("probe", lock=self._lock)
        return [str(await probe.defer_async(tag=tag, what=what)) for tag in tags]

    async def states(self, refs: list[str]) -> list[str]:
        manager = self._app.job_manager
        found = [(await manager.get_job_status_async(int(ref))).value for ref in refs]
        return [_STATES.get(each, each) for each in found]


@asynccontextmanager
async def client(terms: bodies.Terms) -> AsyncIterator[bodies.Client]:
    """Lend what submits jobs."""
    async with _app(terms).open_async() as app:
        yield _Client(app, terms)


async def work(terms: bodies.Terms, ready: bodies.Ready) -> None:
    """Be a worker until the process is ended."""
    async with _app(terms).open_async() as app:
        ready()
        await app.run_worker_async(
            concurrency=terms.slots,
            update_heartbeat_interval=terms.beat_s,
            stalled_worker_timeout=terms.silent_s,
        )


def fires(**_: str) -> list[str]:
    """Say that periodic tasks have no zone."""
    raise bodies.NotOffered("periodic tasks take no time zone: their cron expressions are in UTC")
