"""`Client` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from types import EllipsisType, TracebackType
from typing import Any, Self
from uuid import UUID

from timeball.action.draft import Draft
from timeball.action.draft_specs import draft_specs
from timeball.action.job_call import JobCall
from timeball.action.job_specs import job_spec
from timeball.client.async_batches import AsyncBatch
from timeball.client.batches import Batch
from timeball.client.handles import Handle
from timeball.client.schedules import Backfill
from timeball.client.sync import Client, Waiting
from timeball.core.batches import BatchLine
from timeball.core.dependencies import EdgesAnswer, Rule
from timeball.core.limits import Limit
from timeball.core.notes import LogLine
from timeball.core.queues import Queue
from timeball.core.rate import Rate
from timeball.core.records import (
    CancelAnswer,
    DecidedOccurrence,
    Job,
    Schedule,
)
from timeball.core.states import State
from timeball.core.upkeep import DeleteAnswer, MoveAnswer, ReviveAnswer, SnoozeAnswer


class AsyncClient:
    """`Client` for asyncio: the same calls, awaited. Each runs in a thread."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """See `Client.close`."""
        await asyncio.to_thread(self.client.close)

    async def submit(self, job: Callable[..., Any] | str | JobCall, /, **arguments: Any) -> Handle:
        """See `Client.submit`; `connection` is a psycopg `AsyncConnection`."""
        connection = arguments.pop("connection", None)
        if connection is None:
            return await asyncio.to_thread(self.client.submit, job, **arguments)
        spec = job_spec(job, arguments)
        (added,) = await self.client.within("submit_within_async")(connection, [spec])
        return Handle(self.client, added.uuid, added.id)

    async def submit_many(
        self, job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle]:
        """See `Client.submit_many`."""
        return await asyncio.to_thread(self.client.submit_many, job, each, **options)

    async def submit_all(self, drafts: Iterable[Draft], *, connection: Any = None) -> list[Handle]:
        """See `Client.submit_all`; `connection` is a psycopg `AsyncConnection`."""
        if connection is None:
            return await asyncio.to_thread(self.client.submit_all, drafts)
        specs = draft_specs(drafts)
        added = await self.client.within("submit_within_async")(connection, specs)
        return [Handle(self.client, job.uuid, job.id) for job in added]

    def batch(self, name: str = "", **options: Any) -> AsyncBatch:
        """See `Client.batch`; its block is an `async with`."""
        return AsyncBatch(self.client.batch(name, **options))

    async def get_batch(self, batch: AsyncBatch | Batch | UUID) -> AsyncBatch:
        """See `Client.get_batch`."""
        uuid = batch if isinstance(batch, UUID) else batch.uuid
        return AsyncBatch(await asyncio.to_thread(self.client.get_batch, uuid))

    async def batches(self, *, limit: int = 50, before_id: int | None = None) -> list[BatchLine]:
        """See `Client.batches`."""
        return await asyncio.to_thread(self.client.batches, limit=limit, before_id=before_id)

    async def cancel(self, job: Handle | UUID) -> CancelAnswer:
        """See `Client.cancel`."""
        return await asyncio.to_thread(self.client.cancel, job)

    async def move(
        self, job: Handle | UUID, *, queue: str | None = None, priority: int | None = None
    ) -> MoveAnswer:
        """See `Client.move`."""
        return await asyncio.to_thread(self.client.move, job, queue=queue, priority=priority)

    async def add_edges(
        self, job: Handle | UUID, after: Collection[Any], *, rule: Rule | str = Rule.ALL_SUCCESS
    ) -> EdgesAnswer:
        """See `Client.add_edges`."""
        return await asyncio.to_thread(self.client.add_edges, job, after, rule=rule)

    async def snooze(
        self, job: Handle | UUID, *, until: datetime | None = None, delay_s: float | None = None
    ) -> SnoozeAnswer:
        """See `Client.snooze`."""
        return await asyncio.to_thread(self.client.snooze, job, until=until, delay_s=delay_s)

    async def revive(self, job: Handle | UUID) -> ReviveAnswer:
        """See `Client.revive`."""
        return await asyncio.to_thread(self.client.revive, job)

    async def revive_many(self, jobs: Iterable[Handle | UUID]) -> list[ReviveAnswer]:
        """See `Client.revive_many`."""
        return await asyncio.to_thread(self.client.revive_many, jobs)

    async def delete(self, job: Handle | UUID) -> DeleteAnswer:
        """See `Client.delete`."""
        return await asyncio.to_thread(self.client.delete, job)

    async def delete_many(self, jobs: Iterable[Handle | UUID]) -> list[DeleteAnswer]:
        """See `Client.delete_many`."""
        return await asyncio.to_thread(self.client.delete_many, jobs)

    async def limit(
        self,
        *,
        at_once: int | EllipsisType | None = ...,
        rate: Rate | str | EllipsisType | None = ...,
        key: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
    ) -> None:
        """See `Client.limit`."""
        await asyncio.to_thread(
            self.client.limit, at_once=at_once, rate=rate, key=key, kind=kind, queue=queue
        )

    async def limits(self) -> list[Limit]:
        """See `Client.limits`."""
        return await asyncio.to_thread(self.client.limits)

    async def queues(self) -> list[Queue]:
        """See `Client.queues`."""
        return await asyncio.to_thread(self.client.queues)

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """See `Client.limit_depth`."""
        await asyncio.to_thread(self.client.limit_depth, name, max_depth)

    async def pause_queue(self, name: str, *, by: str | None = None) -> bool:
        """See `Client.pause_queue`."""
        return await asyncio.to_thread(self.client.pause_queue, name, by=by)

    async def resume_queue(self, name: str) -> bool:
        """See `Client.resume_queue`."""
        return await asyncio.to_thread(self.client.resume_queue, name)

    async def get(self, job: Handle | UUID) -> Job:
        """See `Client.get`."""
        return await asyncio.to_thread(self.client.get, job)

    async def logs(self, job: Handle | UUID) -> list[LogLine]:
        """See `Client.logs`."""
        return await asyncio.to_thread(self.client.logs, job)

    async def counts(self, queue: str | None = None) -> dict[State, int]:
        """See `Client.counts`."""
        return await asyncio.to_thread(self.client.counts, queue)

    async def wait(
        self, jobs: Collection[Handle | UUID], timeout_s: float | None = None
    ) -> list[Job]:
        """See `Client.wait`. Cancelling it stops the waiting and leaves the jobs alone."""
        waiting = Waiting(self.client.store, jobs, timeout_s)
        while (rest_s := await asyncio.to_thread(waiting.look)) is not None:  # noqa: ASYNC110 - a store can only be asked
            await asyncio.sleep(rest_s)
        return await asyncio.to_thread(waiting.jobs)

    async def schedule(
        self,
        name: str,
        job: Callable[..., Any] | str | JobCall,
        *,
        cron: str,
        tz: str,
        **options: Any,
    ) -> int:
        """See `Client.schedule`."""
        return await asyncio.to_thread(self.client.schedule, name, job, cron=cron, tz=tz, **options)

    async def remove_schedule(self, name: str) -> None:
        """See `Client.remove_schedule`."""
        await asyncio.to_thread(self.client.remove_schedule, name)

    async def withdraw(self, source: str, *, keep: Collection[str]) -> list[str]:
        """See `Client.withdraw`."""
        return await asyncio.to_thread(self.client.withdraw, source, keep=keep)

    async def pause_schedule(self, name: str) -> None:
        """See `Client.pause_schedule`."""
        await asyncio.to_thread(self.client.pause_schedule, name)

    async def resume_schedule(self, name: str, *, backfill: bool = False) -> None:
        """See `Client.resume_schedule`."""
        await asyncio.to_thread(self.client.resume_schedule, name, backfill=backfill)

    async def run_schedule(self, name: str) -> Handle:
        """See `Client.run_schedule`."""
        return await asyncio.to_thread(self.client.run_schedule, name)

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False
    ) -> Backfill:
        """See `Client.backfill`."""
        return await asyncio.to_thread(self.client.backfill, name, start, end, dry_run=dry_run)

    async def get_schedule(self, name: str) -> Schedule:
        """See `Client.get_schedule`."""
        return await asyncio.to_thread(self.client.get_schedule, name)

    async def schedules(self) -> list[Schedule]:
        """See `Client.schedules`."""
        return await asyncio.to_thread(self.client.schedules)

    async def occurrences(
        self, name: str, limit: int = 50, before: datetime | None = None
    ) -> list[DecidedOccurrence]:
        """See `Client.occurrences`."""
        return await asyncio.to_thread(self.client.occurrences, name, limit, before)
