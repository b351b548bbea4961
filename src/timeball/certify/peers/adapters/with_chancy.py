"""Chancy with its default plugins and Cron, as its documentation has it; the async executor.

Recovery and Leadership are given shorter times than theirs by default, and so is the worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from chancy import (  # type: ignore[import-not-found]  # has an environment of its own
    Chancy,
    Job,
    Queue,
    Reference,
    Worker,
)
from chancy.plugins import cron as chancy_cron  # type: ignore[import-not-found]  # the same
from chancy.plugins.leadership import Leadership  # type: ignore[import-not-found]  # the same
from chancy.plugins.recovery import Recovery  # type: ignore[import-not-found]  # the same

if TYPE_CHECKING:
    from timeball.certify.peers.adapters import bodies
else:
    import bodies

DISTRIBUTION: Final = "chancy"
_STATES: Final = {"pending": "waiting", "retrying": "waiting"}
_JOB: Final = "bodies.carry_out"


def _app(terms: bodies.Terms) -> Any:
    beat_s, silent_s = terms.beat_s, terms.silent_s
    return Chancy(
        terms.dsn,
        plugins=[
            Leadership(poll_interval=beat_s, timeout=silent_s),
            Recovery(poll_interval=beat_s),
            chancy_cron.Cron(),
        ],
    )


async def prepare(terms: bodies.Terms) -> None:
    """Migrate, and declare the queue."""
    async with _app(terms) as app:
        await app.migrate()
        executor = Chancy.Executor.Async
        await app.declare(Queue("default", concurrency=terms.slots, executor=executor))


class _Client:
    def __init__(self, app: Any, terms: bodies.Terms) -> None:
        self._app = app
        self._alone = terms.alone

    async def submit(self, tags: list[str], what: str) -> list[str]:
        if self._alone:
            raise bodies.NotOffered(
                "a queue's concurrency is of each worker; over all workers there is a rate limit"
            )
        jobs = [Job(func=_JOB, kwargs={"tag": tag, "what": what}) for tag in tags]
        return [str((await self._app.push(job)).identifier) for job in jobs]

    async def states(self, refs: list[str]) -> list[str]:
        jobs = [await self._app.get_job(Reference(ref)) for ref in refs]
        found = [job.state.value if job else "unknown" for job in jobs]
        return [_STATES.get(each, each) for each in found]


@asynccontextmanager
async def client(terms: bodies.Terms) -> AsyncIterator[bodies.Client]:
    """Lend what submits jobs."""
    async with _app(terms) as app:
        yield _Client(app, terms)


async def work(terms: bodies.Terms, ready: bodies.Ready) -> None:
    """Be a worker until the process is ended."""
    beat_s, silent_s = terms.beat_s, terms.silent_s
    async with (
        _app(terms) as app,
        Worker(app, heartbeat_poll_interval=beat_s, heartbeat_timeout=silent_s) as worker,
    ):
        ready()
        await worker.wait_for_shutdown()


def fires(cron: str, zone: str, after: str, until: str) -> list[str]:
    """Return when a schedule fires between two instants, as the plugin reckons it."""
    at, end = datetime.fromisoformat(after), datetime.fromisoformat(until)
    found = []
    # Its public way begins at this moment: only the function below it takes another one.
    while (at := chancy_cron._next_run(cron, at, ZoneInfo(zone))) <= end:  # noqa: SLF001
        found.append(at.isoformat())
    return found
