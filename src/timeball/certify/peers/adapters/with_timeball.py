"""Timeball itself, by the same means as the others: a client, and `timeball worker`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import takewhile
from typing import Final
from uuid import UUID

from timeball.action.registry import job
from timeball.certify.peers.adapters import bodies
from timeball.client.aio import AsyncClient
from timeball.client.connect import connect_async
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.retry import Retry
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.migrate import migrate
from timeball.store.postgres.panorama import Panorama

DISTRIBUTION: Final = "timeball"
_STATES: Final = {"pending": "waiting", "scheduled": "waiting"}
_PROGRAM: Final = "from timeball.cli.main import main; main()"
_HERE: Final = "timeball.certify.peers.adapters.with_timeball"
_ONE: Final = "one at once"
_LOOK_S: Final = 0.1


@job(name="peers.probe", retry=Retry(0))
async def probe(tag: str, what: str) -> str:
    """Do what a probe's job does."""
    return await bodies.carry_out(tag, what)


async def prepare(terms: bodies.Terms) -> None:
    """Make its schema."""
    connections = Connections(terms.dsn)
    migrate(connections)
    connections.close()


class _Client:
    def __init__(self, client: AsyncClient, key: str | None) -> None:
        self._client = client
        self._options = {"key": key} if key else {}

    async def submit(self, tags: list[str], what: str) -> list[str]:
        each = [{"tag": tag, "what": what} for tag in tags]
        handles = await self._client.submit_many(probe, each, **self._options)
        return [str(handle.uuid) for handle in handles]

    async def states(self, refs: list[str]) -> list[str]:
        found = [str((await self._client.get(UUID(ref))).state) for ref in refs]
        return [_STATES.get(each, each) for each in found]


@asynccontextmanager
async def client(terms: bodies.Terms) -> AsyncIterator[bodies.Client]:
    """Lend what submits jobs."""
    async with connect_async(terms.dsn) as lent:
        yield _Client(lent, _ONE if terms.alone else None)


async def work(terms: bodies.Terms, ready: bodies.Ready) -> None:
    """Be a worker until the process is ended."""
    words = ("worker", "--app", _HERE, "--async", str(terms.slots), "--lease", f"{terms.silent_s}s")
    command = (sys.executable, "-P", "-c", _PROGRAM, *words, "--dsn", terms.dsn)
    process = await asyncio.create_subprocess_exec(*command)
    connections = Connections(terms.dsn)
    await asyncio.to_thread(_registered, Panorama(connections), f"worker-{process.pid}")
    connections.close()
    ready()
    await process.wait()


def _registered(panorama: Panorama, name: str) -> None:
    """Wait until a worker of that supervisor is in the database."""
    while not any(worker.name.startswith(name) for worker in panorama.workers()):
        time.sleep(_LOOK_S)


def fires(cron: str, zone: str, after: str, until: str) -> list[str]:
    """Return when a schedule fires between two instants, under the policy by default."""
    begin, end = datetime.fromisoformat(after), datetime.fromisoformat(until)
    args = {"tag": "", "what": "note"}
    runs = agenda_of(schedule_spec("probe", probe, cron=cron, tz=zone, args=args)).runs(begin)
    return [due.at.isoformat() for due in takewhile(lambda due: due.at <= end, runs)]
