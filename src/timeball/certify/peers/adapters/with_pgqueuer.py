"""PgQueuer over asyncpg, as its documentation has it: one PgQueuer a process.

A job that has ended is in the log only, so its state is the last one there. An entrypoint of its
own is for the jobs that must run one at once, with `concurrency_limit=1`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import asyncpg  # type: ignore[import-not-found]  # has an environment of its own
from pgqueuer import PgQueuer  # type: ignore[import-not-found]  # the same
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]  # the same
from pgqueuer.queries import Queries  # type: ignore[import-not-found]  # the same

if TYPE_CHECKING:
    from timeball.certify.peers.adapters import bodies
else:
    import bodies

DISTRIBUTION: Final = "pgqueuer"
_STATES: Final = {
    "queued": "waiting", "picked": "running", "successful": "succeeded", "exception": "failed",
}  # fmt: skip


async def prepare(terms: bodies.Terms) -> None:
    """Install its schema."""
    connection = await asyncpg.connect(terms.dsn)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


class _Client:
    def __init__(self, queries: Any, entrypoint: str) -> None:
        self._queries = queries
        self._entrypoint = entrypoint

    async def submit(self, tags: list[str], what: str) -> list[str]:
        payloads: list[bytes | None] = [json.dumps([tag, what]).encode() for tag in tags]
        names, priorities = [self._entrypoint] * len(tags), [0] * len(tags)
        return [str(ref) for ref in await self._queries.enqueue(names, payloads, priorities)]

    async def states(self, refs: list[str]) -> list[str]:
        found = {str(ref): state for ref, state in await self._queries.job_status(
            [int(ref) for ref in refs]
        )}  # fmt: skip
        return [_STATES.get(found.get(ref, ""), found.get(ref, "unknown")) for ref in refs]


@asynccontextmanager
async def client(terms: bodies.Terms) -> AsyncIterator[bodies.Client]:
    """Lend what submits jobs."""
    connection = await asyncpg.connect(terms.dsn)
    try:
        yield _Client(Queries(AsyncpgDriver(connection)), "one" if terms.alone else "probe")
    finally:
        await connection.close()


async def work(terms: bodies.Terms, ready: bodies.Ready) -> None:
    """Be a worker until the process is ended."""
    peer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(terms.dsn))

    async def probe(job: Any) -> None:
        tag, what = json.loads(job.payload)
        await bodies.carry_out(tag, what)

    peer.entrypoint("probe", accepts_context=False)(probe)
    peer.entrypoint("one", concurrency_limit=1, accepts_context=False)(probe)
    ready()
    await peer.run(heartbeat_timeout=timedelta(seconds=terms.silent_s))


def fires(**_: str) -> list[str]:
    """Say that schedules have no zone."""
    raise bodies.NotOffered("schedules take no time zone: their cron expressions are in UTC")
