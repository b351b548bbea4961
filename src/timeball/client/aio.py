"""`Client` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from timeball.client.specs import job_spec
from timeball.client.sync import Client, Handle, Waiting
from timeball.core.records import CancelAnswer, Job
from timeball.core.states import State


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

    async def submit(self, job: Callable[..., Any] | str, /, **arguments: Any) -> Handle:
        """See `Client.submit`; `connection` is a psycopg `AsyncConnection`."""
        connection = arguments.pop("connection", None)
        if connection is None:
            return await asyncio.to_thread(self.client.submit, job, **arguments)
        spec = job_spec(job, arguments)
        (job_id,) = await self.client.within("submit_within_async")(connection, [spec])
        return Handle(self.client, spec.uuid, job_id)

    async def submit_many(
        self, job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle]:
        """See `Client.submit_many`."""
        return await asyncio.to_thread(self.client.submit_many, job, each, **options)

    async def cancel(self, job: Handle | UUID) -> CancelAnswer:
        """See `Client.cancel`."""
        return await asyncio.to_thread(self.client.cancel, job)

    async def get(self, job: Handle | UUID) -> Job:
        """See `Client.get`."""
        return await asyncio.to_thread(self.client.get, job)

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
        self, name: str, job: Callable[..., Any] | str, *, cron: str, tz: str, **options: Any
    ) -> int:
        """See `Client.schedule`."""
        return await asyncio.to_thread(self.client.schedule, name, job, cron=cron, tz=tz, **options)
