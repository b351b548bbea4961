"""APScheduler 4: one AsyncScheduler a process over SQLAlchemyDataStore and AsyncpgEventBroker.

It keeps a job only while that has not ended, and a result until it has been read once, so what
was read is remembered here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from apscheduler import (  # type: ignore[import-not-found]  # has an environment of its own
    AsyncScheduler,
    JobLookupError,
)
from apscheduler.datastores.sqlalchemy import (  # type: ignore[import-not-found]  # the same
    SQLAlchemyDataStore,
)
from apscheduler.eventbrokers.asyncpg import (  # type: ignore[import-not-found]  # the same
    AsyncpgEventBroker,
)
from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-not-found]  # the same
from sqlalchemy.ext.asyncio import (  # type: ignore[import-not-found]  # the same
    create_async_engine,
)

if TYPE_CHECKING:
    from timeball.certify.peers.adapters import bodies
else:
    import bodies

DISTRIBUTION: Final = "apscheduler"
_STATES: Final = {"success": "succeeded", "error": "failed"}
_KEPT_S: Final = 3600


def _scheduler(terms: bodies.Terms) -> Any:
    engine = create_async_engine(terms.dsn.replace("postgresql:", "postgresql+asyncpg:", 1))
    return AsyncScheduler(
        SQLAlchemyDataStore(engine),
        AsyncpgEventBroker(terms.dsn),
        cleanup_interval=terms.beat_s,
        lease_duration=terms.silent_s,
        max_concurrent_jobs=terms.slots,
    )


async def prepare(terms: bodies.Terms) -> None:
    """Have its tables made, which a scheduler does when it starts, and configure the tasks."""
    async with _scheduler(terms) as scheduler:
        await _configure(scheduler)


async def _configure(scheduler: Any) -> None:
    for name, at_once in (("probe", None), ("one", 1)):
        await scheduler.configure_task(name, func=bodies.carry_out, max_running_jobs=at_once)


class _Client:
    def __init__(self, scheduler: Any, name: str) -> None:
        self._scheduler = scheduler
        self._name = name
        self._read: dict[str, str] = {}

    async def submit(self, tags: list[str], what: str) -> list[str]:
        add = self._scheduler.add_job
        options = {"result_expiration_time": _KEPT_S}
        return [str(await add(self._name, args=[tag, what], **options)) for tag in tags]

    async def states(self, refs: list[str]) -> list[str]:
        jobs = {str(job.id): job for job in await self._scheduler.get_jobs()}
        return [await self._state(ref, jobs.get(ref)) for ref in refs]

    async def _state(self, ref: str, job: Any) -> str:
        try:
            result = await self._scheduler.get_job_result(UUID(ref), wait=False)
        except JobLookupError:
            if job is None:
                return self._read.get(ref, "unknown")
            return "running" if job.acquired_by else "waiting"
        if result is not None:
            self._read[ref] = _STATES.get(result.outcome.name, result.outcome.name)
        return self._read.get(ref, "unknown")


@asynccontextmanager
async def client(terms: bodies.Terms) -> AsyncIterator[bodies.Client]:
    """Lend what submits jobs."""
    async with _scheduler(terms) as scheduler:
        await _configure(scheduler)
        yield _Client(scheduler, "one" if terms.alone else "probe")


async def work(terms: bodies.Terms, ready: bodies.Ready) -> None:
    """Be a scheduler that runs jobs, until the process is ended."""
    async with _scheduler(terms) as scheduler:
        await _configure(scheduler)
        ready()
        await scheduler.run_until_stopped()


def fires(cron: str, zone: str, after: str, until: str) -> list[str]:
    """Return when a schedule fires between two instants, as its trigger reckons it."""
    begin, end = datetime.fromisoformat(after), datetime.fromisoformat(until)
    trigger = CronTrigger.from_crontab(
        cron, start_time=begin, end_time=end, timezone=ZoneInfo(zone)
    )
    found = []
    while (at := trigger.next()) is not None:
        found.append(at.isoformat())
    return found
